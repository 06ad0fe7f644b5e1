"""A user's own torch module, made ready for per-client and per-example training."""
