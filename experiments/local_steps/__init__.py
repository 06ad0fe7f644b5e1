"""Several local steps under a sum of noise shares: the sound ways beside the unsound claim, at one certified ε."""
