"""Deployments with real clients: keys, the owner's policy and ledger, and the node that answers the server."""
