"""What holds each promise: the page docs/evidence.md, written from promises.toml."""
