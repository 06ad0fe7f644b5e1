"""The algorithms of the papers, each a function that composes parts."""
