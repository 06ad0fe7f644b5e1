"""The networks that this package brings."""
