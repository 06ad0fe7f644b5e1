"""Trade-off curves: the theory of one paper, or the cost of one promise, as a table, as JSON and as a picture."""
