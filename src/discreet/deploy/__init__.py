"""Real clients on their own machines: keys, the owner's policy and ledger, and what a node answers a server."""
