"""docs/results/tables.md from the results: what the untouched starter keeps of the gain over a constant answer."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.common.means import mean, mean_text
from experiments.tables.reproduce import IN_GROUPS, SEEDS, Results, best_setting, shape_key, variants
from experiments.tables.sources import SOURCES, Source
from experiments.tables.trials import CLIENTS, Trial

PAGE = Path(__file__).parents[2] / "docs" / "results" / "tables.md"
ENOUGH_ROWS, FEW_COLUMNS, GOAL, GOAL_FOR_CLIENTS = 10_000, 50, 85.0, 50.0

INTRODUCTION = """# What the starter for a table learns

Written by `python -m experiments.tables.reproduce --page` from `experiments/tables/results.jsonl`. Each table is a CSV
with [public ranges](../../experiments/tables/public_ranges.py) that were written from the meaning of its columns, not
from the data. Then, as a user would,

    discreet init rows.toml --table table.csv --client client --label LABEL --ranges ranges.toml
    discreet run rows.toml --out run --json --set seed=SEED --set evaluate_every=1000

with everything else as `init` writes it ([the rules](../decisions/0027-starter-rules.md)): ε = 2 for every row against
the server, a linear model, noise in shares. Numbers are percent on test rows, a fifth of each client's: the accuracy,
or, where a number is predicted (marked R²), the explained part of its variance. They are means over three seeds ± their
standard error; each seed has its own test rows.

- **Constant**: always the most frequent label, or the mean.
- **FedAvg**: without privacy, 30 rounds of one epoch, its rate chosen on validation rows from three only (0.03, 0.1 and
  0.3); a finer search could raise it, and so lower what is kept.
- **Central**: logistic or ridge regression on the rows of all clients in one place, without privacy, its penalty chosen
  from four on validation rows.
- **Kept**: the gain of the starter over the constant, as a share of the gain of the better of FedAvg and central; the
  goal is a mean of 85 % on every table with at least 10,000 rows and at most 50 columns.

The rules were chosen on the validation rows of the first {choosing} tables, and on parts of them; the
other {others} tables chose nothing. No test row chose anything.
"""

WHOLE = """## Whole clients

`discreet init … --unit client`: ε = 8 for whole clients against the server. Each table is cut into {clients} clients of
equal size, in the order of its own clients, so that a client has rows of one or two states or places. The better model
without privacy is the central one.
"""

VARIANTS = """## Around the rules

The starter with one setting changed, on validation rows of the tables that chose the rules (one seed): the share of the
gain of the best model without privacy, in percent. The first row is the starter. The clip is a multiple of the
starter's. These differences are small, and so the rules were not moved to the best of them.
"""


def value(source: Source, trial: Trial, results: Results) -> float | None:
    """Return an accuracy or an explained part of the variance, in percent; None before it was run."""
    line = results.get(trial.key)
    constant = results.get(_constant(trial).key)
    if line is None or constant is None or line["score"] is None:
        return None
    score, least = float(line["score"]), float(constant["score"])
    return 100 * (1 - score / least) if source.is_regression else 100 * score


def _constant(trial: Trial) -> Trial:
    return Trial(trial.table, "constant", trial.seed, (), trial.is_validation, trial.in_groups)


def values(source: Source, trials: Sequence[Trial], results: Results) -> dict[int, float]:
    """Return the values of trials that were run, by seed."""
    found = {trial.seed: value(source, trial, results) for trial in trials}
    return {seed: each for seed, each in found.items() if each is not None}


def reported_values(source: Source, kind: str, results: Results, *, in_groups: bool = False) -> dict[int, float]:
    """Return the values on test rows of one kind of trial, with the settings that validation rows chose."""
    settings = best_setting(source, kind, results) if kind in ("fedavg", "central") else ()
    if settings is None:
        return {}
    trials = [Trial(source.name, kind, seed, settings, in_groups=in_groups) for seed in SEEDS]  # type: ignore[arg-type]
    return values(source, trials, results)


def kept_shares(own: dict[int, float], constant: dict[int, float], others: Sequence[dict[int, float]]) -> list[float]:
    """Return the kept share of the gain in percent, for each seed that all have; of the better of the others."""
    full = [other for other in others if other]
    if not full:
        return []
    better = max(full, key=lambda other: mean(list(other.values())).value)
    seeds = sorted(own.keys() & constant.keys() & better.keys())
    return [100 * (own[seed] - constant[seed]) / (better[seed] - constant[seed]) for seed in seeds]


def _text(found: dict[int, float]) -> str:
    return mean_text(list(found.values()), 1).replace("**", "")


def _goal(source: Source, rows: int, shares: Sequence[float]) -> str:
    if rows < ENOUGH_ROWS or source.columns > FEW_COLUMNS or not shares:
        return "no goal"
    return "met" if mean(shares).value >= GOAL else "**missed**"


def _row_table(sources: Sequence[Source], results: Results) -> Iterator[str]:
    heads = ["table", "rows", "columns", "clients", "constant", "FedAvg", "central"]
    heads += ["**starter, ε = 2**", "**kept**", "worst seed", "≥ 85 %"]
    yield f"| {' | '.join(heads)} |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    for source in sources:
        shape = results.get(shape_key(source))
        if shape is None:
            continue
        constant, fedavg, central, own = (
            reported_values(source, kind, results) for kind in ("constant", "fedavg", "central", "starter")
        )
        shares = kept_shares(own, constant, (fedavg, central))
        sizes = f"{shape['clients']} ({shape['smallest']:,}–{shape['largest']:,} rows)"
        about = source.about + (" (R²)" if source.is_regression else "")
        cells = [about, f"{shape['rows']:,}", str(source.columns), sizes, *map(_text, (constant, fedavg, central))]
        cells += [mean_text(list(own.values()), 1), mean_text(shares, 0)]
        cells += [f"{min(shares):.0f}" if shares else "–", _goal(source, shape["rows"], shares)]
        yield f"| {' | '.join(cells)} |"


def _client_table(results: Results) -> Iterator[str]:
    yield "| table | constant | central | **starter, ε = 8** | **kept** | ≥ 50 % | `plan` warns |"
    yield "|---|---:|---:|---:|---:|---|---|"
    for source in SOURCES:
        if source.name not in IN_GROUPS:
            continue
        constant, central, own = (
            reported_values(source, kind, results, in_groups=True) for kind in ("constant", "central", "whole_clients")
        )
        shares = kept_shares(own, constant, (central,))
        if not shares:
            continue
        warnings = results[Trial(source.name, "whole_clients", SEEDS[0], in_groups=True).key]["plan_warnings"]
        met = "met" if mean(shares).value >= GOAL_FOR_CLIENTS else "**missed**"
        warned = "yes" if any("no better than" in warning for warning in warnings) else "no"
        about = source.about + (" (R²)" if source.is_regression else "")
        cells = [about, _text(constant), _text(central), mean_text(list(own.values()), 1), mean_text(shares, 0)]
        yield f"| {' | '.join([*cells, met, warned])} |"


def _variant_table(results: Results) -> Iterator[str]:
    choosing = [source for source in SOURCES if source.chooses]
    yield f"| changed | {' | '.join(source.name for source in choosing)} |"
    yield "|---|" + "---:|" * len(choosing)
    names = ["nothing", "clip × ¼", "clip × ½", "clip × 2", "rate 0.01", "rate 0.1", "50 rounds", "200 rounds"]
    for place, name in enumerate(names):
        cells = [_variant_share(source, variants(source)[place], results) for source in choosing]
        yield f"| {name} | {' | '.join('–' if cell is None else f'{cell:.0f}' for cell in cells)} |"


def _variant_share(source: Source, settings: tuple[str, ...], results: Results) -> float | None:
    """Return the kept share of the gain on validation rows, in percent."""
    seed = SEEDS[0]
    own = value(source, Trial(source.name, "variant", seed, settings, is_validation=True), results)
    others = []
    for kind in ("fedavg", "central"):
        best = best_setting(source, kind, results)
        if best is not None:
            others.append(value(source, Trial(source.name, kind, seed, best, is_validation=True), results))
    constant = value(source, Trial(source.name, "constant", seed, is_validation=True), results)
    better = max((other for other in others if other is not None), default=None)
    if own is None or constant is None or better is None:
        return None
    return 100 * (own - constant) / (better - constant)


def write(results: Results) -> Path:
    """Write the page, and return where it is."""
    choosing = [source for source in SOURCES if source.chooses]
    others = [source for source in SOURCES if not source.chooses]
    parts = [
        INTRODUCTION.format(choosing=len(choosing), others=len(others)),
        "## Rows\n\nTables on which the rules were chosen:\n",
        "\n".join(_row_table(choosing, results)),
        "\nTables that chose nothing:\n",
        "\n".join(_row_table(others, results)),
        "",
        WHOLE.format(clients=CLIENTS),
        "\n".join(_client_table(results)),
        "",
        VARIANTS,
        "\n".join(_variant_table(results)),
    ]
    PAGE.write_text("\n".join(parts) + "\n")
    return PAGE
