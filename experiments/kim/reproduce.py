"""Computes the curves of the poster's three graphs and writes docs/results/kim.md.

python -m experiments.kim.reproduce
"""

from experiments.kim.page import write


def main() -> None:
    print(write())


if __name__ == "__main__":
    main()
