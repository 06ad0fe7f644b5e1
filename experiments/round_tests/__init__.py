"""One round of every private recipe, attacked in 100,000 repetitions for each unit and view."""
