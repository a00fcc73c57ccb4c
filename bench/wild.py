"""Whether `check` still finds the bugs of docs/wild.toml: in packages that are installed here, and in checkouts.

    python bench/wild.py [FOLDER …]

A row of a package counts where that version is installed; one of a repository (owner/name) where a FOLDER holds its
path.
"""

from __future__ import annotations

import sys
import sysconfig
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torchtriage

ROWS = Path(__file__).parent.parent / "docs/wild.toml"


def home(row: dict[str, Any], folders: list[Path]) -> Path | None:
    """The file that ROW speaks of; None where it is not at hand in that version."""
    if "/" in row["project"]:
        own = [each for each in folders if each.resolve().name == row["project"].partition("/")[2]]
        return next((each / row["path"] for each in own or folders if (each / row["path"]).is_file()), None)
    try:
        is_same = version(row["project"]) == row["version"]
    except PackageNotFoundError:
        is_same = False
    return Path(sysconfig.get_paths()["purelib"], row["path"]) if is_same else None


def is_found(row: dict[str, Any], file: Path) -> bool:
    case = torchtriage.check([file])
    return any(
        finding.fault.slug == row["fault"] and any(each.place.line == row["line"] for each in finding.evidence)
        for finding in case.findings
    )


def main() -> None:
    folders = [Path(each) for each in sys.argv[1:]]
    rows = tomllib.loads(ROWS.read_text(encoding="utf-8"))["bug"]
    seen = missed = 0
    for row in rows:
        file = home(row, folders)
        word = "not at hand" if file is None else "found" if is_found(row, file) else "MISSED"
        seen, missed = seen + (word == "found"), missed + (word == "MISSED")
        print(f"{word:12s} {row['project']} {row['version']} {row['path']}:{row['line']} {row['fault']}")
    print(f"{seen} of {seen + missed} found; {len(rows) - seen - missed} not at hand")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
