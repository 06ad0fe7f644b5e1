"""Claims of three papers with every setting chosen on validation data, and told on test data that chose nothing."""
