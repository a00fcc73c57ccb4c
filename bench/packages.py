"""What `check` says of whole packages that are installed here, and how that differs from an older commit.

    python bench/packages.py [--before COMMIT] [--folders N] [PACKAGE …]

Each PACKAGE (accelerate, lightning, transformers, torch) is copied without its compiled parts, and examined in portions
of N folders, each in a process of its own with at most MEMORY bytes and SECONDS: a library of models is read in full,
and nothing that goes wrong with one portion hides the others. Printed are the findings of the default persona by fault,
the seconds of CPU, and, with --before, each finding that is gone or new, with its line. COMMIT is checked out of this
repository into a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent.parent
MEMORY = 8 << 30
SECONDS = 1800
PACKAGES = ("accelerate", "lightning", "transformers", "torch")
NOTHING = 3
"""The exit status where no file could be examined: of code that is generated from templates."""
LARGE = 40
"""Folders of which a folder inside of a package is taken apart itself: transformers/models has hundreds."""


@dataclass
class Sum:
    """What was said of all portions, by fault, path and line."""

    findings: dict[tuple[str, str, int], str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, portion: list[Path], code: Path, root: Path) -> None:
        """Lets `check`, of the source CODE, examine PORTION of the packages under ROOT."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "torchtriage", "check", "--json", "--no-cache", "-j", "1", *map(str, portion)]
        try:
            ran = subprocess.run(
                command,
                cwd=root,
                env={"PYTHONPATH": str(code), "PATH": "", "PYTHONHASHSEED": "0"},
                capture_output=True,
                text=True,
                timeout=SECONDS,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
                check=False,
            )
            text = '{"findings": []}' if ran.returncode == NOTHING else ran.stdout
            case = json.loads(text) if ran.returncode in (0, 1, NOTHING) else None
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            case = None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if case is None:
            self.broken.append(f"{portion[0]} …")
            return
        for finding in case["findings"]:
            for each in finding["evidence"]:
                place = each.get("place") or {}
                key = finding["fault"], str(place.get("path")), int(place.get("line") or 0)
                self.findings[key] = finding["severity"]


def portions(root: Path, package: str, most: int) -> Iterator[list[Path]]:
    """The files and folders of PACKAGE under ROOT, the folders of a large one by themselves, MOST at a time."""
    parts: list[Path] = []
    for each in sorted((root / package).iterdir()):
        inside = [one for one in each.iterdir() if one.is_dir()] if each.is_dir() else []
        parts += sorted(inside) if len(inside) > LARGE else [each]
    named = [each.relative_to(root) for each in parts if each.suffix == ".py" or next(each.rglob("*.py"), None)]
    yield from (named[start : start + most] for start in range(0, len(named), most))


def copy_packages(packages: list[str], root: Path) -> None:
    """The Python files of PACKAGES as they are installed, under ROOT."""
    home = Path(sysconfig.get_paths()["purelib"])
    for package in packages:
        if not (home / package).is_dir():
            raise SystemExit(f"{package} is not installed here: pip install {package}")
        for file in (home / package).rglob("*.py"):
            to = root / file.relative_to(home)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)


def show(packages: list[str], found: Sum) -> None:
    by_fault = Counter((fault, severity) for (fault, _, _), severity in found.findings.items())
    print(f"{', '.join(packages)}: {len(found.findings)} findings by default, {found.seconds:.0f} s of CPU")
    for (fault, severity), number in sorted(by_fault.items(), key=lambda each: (-each[1], each[0])):
        print(f"  {number:4d} {fault} ({severity})")
    for each in found.broken:
        print(f"  NOT EXAMINED, for lack of time or memory: {each}")


def compare(before: Sum, now: Sum, root: Path) -> None:
    for word, here, there in (("gone", before, now), ("new", now, before)):
        for fault, path, line in sorted(here.findings.keys() - there.findings.keys()):
            lines = (root / path).read_text(encoding="utf-8", errors="replace").splitlines()
            text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
            print(f"{word:4s} {fault} {path}:{line} | {text[:80]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--before", help="a commit of this repository")
    parser.add_argument("--folders", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, older = Path(folder, "packages"), Path(folder, "before")
        copy_packages(options.packages, root)
        codes = {"now": HERE / "src"}
        if options.before:
            subprocess.run(["git", "-C", str(HERE), "worktree", "add", "-q", str(older), options.before], check=True)
            codes["before"] = older / "src"
        sums = {name: Sum() for name in codes}
        try:
            for package in options.packages:
                for portion in portions(root, package, options.folders):
                    for name, code in codes.items():
                        sums[name].add(portion, code, root)
        finally:
            if options.before:
                subprocess.run(["git", "-C", str(HERE), "worktree", "remove", "--force", str(older)], check=True)
        for name, found in sums.items():
            print(name, end=": ")
            show(options.packages, found)
        if options.before:
            compare(sums["before"], sums["now"], root)


if __name__ == "__main__":
    main()
