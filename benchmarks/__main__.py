"""`python -m benchmarks`, from the root of the repository."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # where all benchmarks find each other

from speed.command import main

sys.exit(main())
