"""The torch that a project is written for: what the user says, else the oldest that its requirements allow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.core.errors import TriageError
from torchtriage.interface.cli.settings import Project, is_top, table

if TYPE_CHECKING:
    from packaging.version import Version


class Targets:
    """The torch of each project that one command checks."""

    def __init__(self, said: str | None, home: Project) -> None:
        """Raises TriageError where SAID, from the command line, or the setting of HOME is no version.

        HOME: the project of all paths. Its requirements hold for a folder that states none of its own.
        """
        self._home, self._known = home, dict[Path, "Version | None"]()
        self._said = target(said, home.folder, "--target-torch") if said is not None else None
        self._set = _set_in(home.settings.target_torch, home.folder)

    def of(self, path: str | None) -> Version | None:
        """The oldest torch that the project of the file PATH supports; None where nothing states one.

        PATH: None for stdin. Raises TriageError where the project's own target-torch is no version.
        """
        if self._said is not None:
            return self._said
        file = Path(os.path.abspath(path)) if path is not None else None  # noqa: PTH100 - see settings.project
        within = file is not None and file.parent.is_relative_to(self._home.folder)
        return self._nearest(file.parent if file is not None and within else self._home.folder)

    def _nearest(self, folder: Path) -> Version | None:
        """Of FOLDER, else of the next one above it, as far as HOME: setting before requirements."""
        if folder not in self._known:
            self._known[folder] = self._stated(folder)
        return self._known[folder]

    def _stated(self, folder: Path) -> Version | None:
        if folder == self._home.folder:
            return self._set if self._set is not None else target(None, folder, "")
        found = _set_in(_setting(folder), folder)
        if found is None and self._set is None:  # what HOME sets is meant for all of its folders
            found = target(None, folder, "") if is_top(folder) else None
        return found if found is not None else self._nearest(folder.parent)


def _setting(folder: Path) -> str | None:
    """target-torch of the pyproject.toml in FOLDER, which may be any file, as a template in tests."""
    file = folder / "pyproject.toml"
    try:
        found = (table(file) or {}).get("target-torch") if file.is_file() else None
    except TriageError:
        return None
    return found if isinstance(found, str) else None


def _set_in(said: str | None, folder: Path) -> Version | None:
    return target(said, folder, f"target-torch in {folder / 'pyproject.toml'}") if said is not None else None


def target(said: str | None, folder: Path, where: str) -> Version | None:
    """Raises TriageError where SAID, which stands at WHERE, is no version.

    FOLDER: the project's; None where it says nothing of torch.
    """
    if said is not None:
        from packaging.version import InvalidVersion, Version

        try:
            return Version(said)
        except InvalidVersion as error:
            raise TriageError(f"{said!r} is no version", where, "Write it like 2.4.") from error
    oldest = [version for line in _requirements(folder) if (version := _oldest(line)) is not None]
    return min(oldest, default=None)


_BESIDE = re.compile(r"""(?:^\s*(?:-\s*)?|['"])(?:py)?torch\s*([<>=~!]=?[^'"#\n;]*)""", re.MULTILINE)
"""A requirement among others: "torch>=2.1,<2.3" of a setup.py, torch>=2.1 of a setup.cfg, - pytorch=1.13 of conda."""


def _requirements(folder: Path) -> Iterator[str]:
    file = folder / "pyproject.toml"
    if file.is_file():
        import tomllib

        try:
            project = tomllib.loads(file.read_text(encoding="utf-8")).get("project")
        except (OSError, ValueError):
            return  # settings.py has said so already where it matters
        listed = project.get("dependencies") if isinstance(project, dict) else None
        yield from (line for line in listed if isinstance(line, str)) if isinstance(listed, list) else ()
    for named in sorted(folder.glob("requirements*.txt")):
        if named.is_file():
            yield from named.read_text(encoding="utf-8", errors="replace").splitlines()
    for pattern in ("setup.py", "setup.cfg", "environment*.y*ml"):
        for named in sorted(folder.glob(pattern)):
            text = named.read_text(encoding="utf-8", errors="replace") if named.is_file() else ""
            found = (each.strip() for each in _BESIDE.findall(text))
            yield from (f"torch={each}" if each[1:2].isdigit() and each[0] == "=" else f"torch{each}" for each in found)


def _oldest(line: str) -> Version | None:
    """The lowest torch that a line of requirements allows; None for another package, and for no lower bound."""
    if not line.lstrip().lower().startswith("torch"):  # packaging takes longer to load than a small file to be checked
        return None
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Requirement(line.partition(" #")[0].strip())
    except InvalidRequirement:
        return None
    if wanted.name.lower() != "torch":
        return None
    bounds = [
        each.version.removesuffix(".*") for each in wanted.specifier if each.operator in ("==", ">=", "~=", "===")
    ]
    try:
        return max(map(Version, bounds), default=None)
    except InvalidVersion:  # torch===some-build
        return None
