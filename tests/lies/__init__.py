"""Every lie that the tests know of, told in whole runs: `python -m tests.lies` writes docs/results/lies.md."""
