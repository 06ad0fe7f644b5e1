"""The networks of this package."""
