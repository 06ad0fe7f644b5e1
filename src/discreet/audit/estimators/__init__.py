"""Lower confidence bounds on ε from the scores of canaries: numpy only, no torch."""
