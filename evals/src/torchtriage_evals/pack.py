"""The skill pack as an agent is given it: written out by the program itself, named by its hash."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from torchtriage import TriageError

ROUTER = "using-pytorch-engineering"


def pack() -> dict[str, str]:
    """The files of the installed torchtriage's skills by path; raises TriageError where they cannot be written out."""
    with TemporaryDirectory(prefix="torchtriage-skills-") as folder:
        command = [sys.executable, "-m", "torchtriage", "skills", "export", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
        skills = Path(folder, "skills")
        if done.returncode or not (skills / ROUTER / "SKILL.md").is_file():
            do = "Install torchtriage again, into this environment."
            raise TriageError(f"no skills were written: {done.stderr.strip()[-300:]}", "torchtriage skills export", do)
        return {
            path.relative_to(skills).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(skills.rglob("*"))
            if path.is_file()
        }


def digest(files: Mapping[str, str]) -> str:
    """A hash of all FILES and their paths: the first 16 digits of SHA-256."""
    whole = sha256()
    for path in sorted(files):
        for part in (path.encode(), files[path].encode()):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()[:16]


def description(sheet: str) -> str:
    """What the front matter of a SKILL.md says it is for."""
    head = sheet.split("---\n", 2)[1] if sheet.startswith("---\n") else ""
    lines = (line.partition(": ") for line in head.splitlines())
    return next((value.strip().strip('"') for key, _, value in lines if key == "description"), "")
