"""The page's section on which runs were made, on which hardware, and what the missing ones would cost."""

from collections.abc import Iterator

from discreet.experiment.comparison.comparison_results import Result
from experiments.common.means import SEEDS
from experiments.fedsam.cells import Variant, list_variants, select_results

SECONDS_PER_RUN = 8  # of one H200: 49 runs took 400 seconds, up to 15 of them at the same time

HARDWARE = """The runs on MNIST and CIFAR-10 and the last seven on FEMNIST, 49 in all, were made on one NVIDIA H200.
They took 400 seconds with up to 15 at the same time: about 8 seconds of the GPU per run. The other 29 on FEMNIST were
made on a GPU earlier.
"""

LARGER = """
Not run, since the script doesn't ask for it:

- SAM with other radii on MNIST and CIFAR-10: 30 runs, about 5 GPU-minutes.
- The paper's own networks and its 30 local epochs. On CIFAR-10, 50 clients of 100 pictures in 300 rounds of a ResNet-18
  are about 1.5e17 floating-point operations per run, and twice as many with SAM. At the 67 TFLOP/s in fp32 of the
  H200's data sheet, 21 runs take at least 1,000 GPU-minutes; that is calculated, not measured.
"""


def section(results: list[Result]) -> Iterator[str]:
    """What was run and what was not, with the cost of the latter in GPU-minutes."""
    cells = list_variants()
    wanted, missing = SEEDS * len(cells), sum(SEEDS - _seeds_made(results, cell) for cell in cells)
    yield "## What was run, and what was not"
    yield ""
    yield HARDWARE
    if missing:
        minutes = missing * SECONDS_PER_RUN / 60
        yield f"Not run: {missing} of the {wanted} runs that the script asks for, about {minutes:.0f} GPU-minutes."
    else:
        yield f"All {wanted} runs that the script asks for were made."
    yield LARGER


def _seeds_made(results: list[Result], cell: Variant) -> int:
    runs = select_results(results, cell.data, cell.method, **dict(cell.radius))
    return len({run["seed"] for run in runs} & set(range(SEEDS)))
