"""The settings of a starter file for a table, from public numbers: columns, rows and clients.

Numbers are standardised, so that an example with n columns has inputs of norm √(1 + n) or so, whatever the columns are.
All settings follow from that, from the noise, and from trials on validation data of four tables
(docs/decisions/0027-starter-rules.md):

- **Clip.** An example's gradient is its error times its inputs. An error is at most √2 for classes, whatever their
  number, and about 2 for a standardised number. So the clip grows as √(1 + n). A client's update is a mean over its
  rows, in which most of that cancels, and its clip is smaller.
- **Rows.** All rows are in every step as long as they are few: for the same ε, a sum over all rows has the least noise.
  More than `ROWS_A_ROUND` are sampled, which takes less time and costs little noise.
- **Rate.** The server moves the model by Adam, whose steps don't depend on the scale of gradients, nor on how well the
  noise let a column be standardised. It is post-processing, and costs no privacy. A weight moves by about 3 at most,
  rounds times rate. With few rows for each column most of a step is noise, and the rate is smaller.
- **Rounds.** Twice or half as many made no difference in the trials: more rounds need more noise in each.
- **Recipe.** Clients add the noise in shares, and a secure sum shows the server only the sum: gradients of all rows are
  added up and divided by the public number of rows, so that clients may be as unequal as they are. One or two clients
  can't hide in a sum; then each client adds enough noise itself.
"""

import math
from typing import NamedTuple

from discreet.engines.engine import MIN_SECURE_CLIENTS
from discreet.privacy.release import Unit

ROWS_A_ROUND = 100_000
ROUNDS = {"rows": 100, "clients": 50}
CLIP = {"rows": 0.4, "clients": 0.05}  # of √(1 + columns)
RATE, SMALLEST_RATE = 0.03, 0.01
ROWS_A_COLUMN = 10  # with fewer, the rate is smaller
LARGEST_BATCH = 10_000  # of a client's rows, where whole clients are protected
LARGEST_DELTA = 1e-5


class TableShape(NamedTuple):
    """Public numbers of a table.

    Attributes:
        columns: Number of columns that are inputs.
        sizes: Number of rows of each client.
    """

    columns: int
    sizes: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Number of rows of all clients."""
        return sum(self.sizes)


class StarterSettings(NamedTuple):
    """The numbers of a starter file.

    Attributes:
        sampling_rate: The share of a client's rows in each step, where rows are protected.
        batch_size: Rows of a client in its step, where whole clients are protected.
        server_rate: Learning rate of the server's Adam.
        is_sum_hidden: Whether there are enough clients for a secure sum.
    """

    rounds: int
    delta: float
    clip_norm: float
    sampling_rate: float
    batch_size: int
    server_rate: float
    is_sum_hidden: bool


def starter_settings(shape: TableShape, unit: Unit) -> StarterSettings:
    """Return the settings for a table of this shape, and for a promise to rows, persons or whole clients.

    Example:
        >>> starter_settings(TableShape(columns=8, sizes=(500, 700, 800)), "example").clip_norm
        1.2
    """
    kind = "clients" if unit == "client" else "rows"
    units = len(shape.sizes) if unit == "client" else shape.rows
    scarcity = 1.0 if unit == "client" else shape.rows / (ROWS_A_COLUMN * (1 + shape.columns))
    return StarterSettings(
        rounds=ROUNDS[kind],
        delta=min(LARGEST_DELTA, 10.0 ** -math.ceil(math.log10(units + 1))),
        clip_norm=_round_digits(CLIP[kind] * math.sqrt(1 + shape.columns), 2),
        sampling_rate=_round_digits(min(1.0, ROWS_A_ROUND / shape.rows), 2),
        batch_size=min(LARGEST_BATCH, max(shape.sizes)),
        server_rate=_round_digits(min(RATE, max(SMALLEST_RATE, RATE * scarcity)), 1),
        is_sum_hidden=len(shape.sizes) >= MIN_SECURE_CLIENTS,
    )


def _round_digits(value: float, digits: int) -> float:
    """Return the value with so many significant digits."""
    return float(f"{value:.{digits}g}")
