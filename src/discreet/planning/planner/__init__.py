"""A page on this machine where a plan's numbers are sliders, and its curves follow."""
