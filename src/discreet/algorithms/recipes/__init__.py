"""The algorithms of the papers and their baselines: each recipe is a function that composes parts."""
