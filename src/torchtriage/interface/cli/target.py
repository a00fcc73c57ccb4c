"""The torch that a project is written for: what the user says, else the oldest that its requirements allow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.core.errors import TriageError

if TYPE_CHECKING:
    from packaging.version import Version


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
