"""Learning tasks: the built-in digits, public data sets, and a user's own arrays or torch datasets."""
