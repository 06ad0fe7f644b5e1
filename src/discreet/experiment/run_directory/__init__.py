"""The files of a run: writing, reading, and checking that a run may be resumed."""
