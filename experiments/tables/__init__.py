"""What the untouched starter of `discreet init` keeps of the gain over a constant answer, on ten tables."""
