"""Public data sets as files: what they are called, how to get them, whether they are whole, and how to read them."""
