"""Trials over planted jobs and functions: is what is wrong named, and are right ones left in peace.

python bench/trials.py [--only gradcheck|repro|resume] [FILE]: without FILE the planted sets of tests/cases/trials, else
one that others have made, a JSON object a line. Prints how many, how many right, false alarms, Wilson's 95 % interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import gradients
import repeats
import resumed

PARTS: dict[str, Callable[[Path | None], object]] = {
    "gradcheck": gradients.main,
    "repro": repeats.main,
    "resume": resumed.main,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(PARTS))
    parser.add_argument("file", nargs="?", type=Path)
    given = parser.parse_args()
    for name, part in PARTS.items():
        if given.only in (None, name):
            part(given.file)


if __name__ == "__main__":
    main()
