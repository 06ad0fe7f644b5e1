"""Write a table in LaTeX, in the style of the booktabs package, with every special character escaped."""

import re
from collections.abc import Sequence

SHORT = 12  # letters of a heading that stays in one line

SPECIAL = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "∞": r"$\infty$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "−": r"$-$",
    "–": r"\textendash{}",
    "†": r"\textdagger{}",
    "…": r"\dots{}",
}


def escape(text: str) -> str:
    """Escape text for LaTeX: its special characters, and the Greek letters and signs of our tables.

    Two hyphens in a row, as before the name of an option, stay two and become no dash.
    """
    return re.sub("-(?=-)", "-{}", "".join(SPECIAL.get(letter, letter) for letter in text))


def render_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    is_text: Sequence[bool],
    caption: str,
    label: str,
    comment: Sequence[str] = (),
) -> str:
    """Return a floating table, whose caption stands above it.

    Args:
        headings: The heading of each column.
        rows: The cells of each row.
        is_text: Whether each column is text, aligned to the left, and not numbers.
        caption: What a reader must know to read the table.
        label: The name by which the document refers to it.
        comment: Lines that are written above it as comments.
    """
    alignment = "".join("l" if left else "r" for left in is_text)
    lines = [" & ".join(map(escape, cells)) + r" \\" for cells in rows]
    return "\n".join(
        [
            *(f"% {' '.join(line.split())}" for line in comment),
            r"\begin{table}",
            r"  \centering\small",
            f"  \\caption{{{escape(caption)}}}",
            f"  \\label{{{label}}}\\par\\medskip",
            f"  \\begin{{tabular}}{{{alignment}}}",
            r"    \toprule",
            f"    {' & '.join(map(_stack_heading, headings, is_text))} \\\\",
            r"    \midrule",
            *(f"    {line}" for line in lines),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _stack_heading(heading: str, is_left: bool) -> str:
    """Write a heading of several words in two lines of about equal length, so that its column is narrow."""
    words = heading.split()
    if len(words) < 2 or len(heading) <= SHORT:
        return escape(heading)
    splits = [(" ".join(words[:place]), " ".join(words[place:])) for place in range(1, len(words))]
    lines = min(splits, key=lambda pair: max(map(len, pair)))
    stacked = r" \\ ".join(map(escape, lines))
    return f"\\shortstack[{'l' if is_left else 'r'}]{{{stacked}}}"
