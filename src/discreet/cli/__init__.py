"""The `discreet` command: one file a command, one error boundary, one output sink."""
