"""The `discreet` command: one file for each subcommand, one place for errors, one for output."""
