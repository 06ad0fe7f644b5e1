"""How much is revealed: events, accountants, calibration, the ledger and the guarantee card. No torch."""
