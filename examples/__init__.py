"""Short programs that show one thing each, and run as tests."""
