"""torchtriage skills: the pack for coding agents, where their clients look."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchtriage.core.errors import USAGE, TriageError
from torchtriage.interface.cli import terminal
from torchtriage.interface.skillpack.clients import CLIENTS, folders
from torchtriage.report.text import count

if TYPE_CHECKING:
    from torchtriage.interface.skillpack.place import Step

FOUND = 1
_client = click.option(
    "--client",
    "clients",
    multiple=True,
    type=click.Choice([*CLIENTS, "all"]),
    help="Whose folder; may be given several times. Without it: those in use here, else .agents/skills.",
)
_user = click.option("--user/--project", help="Below your home, or below this folder (the default).")


@click.group()
def command() -> None:
    """Installs, exports and checks the skills that a coding agent loads."""


@command.command()
@_client
@_user
@click.option("--force", is_flag=True, help="Writes over files that somebody has changed, without asking.")
def install(clients: tuple[str, ...], user: bool, force: bool) -> None:
    """Puts the skills where clients look for them; once more, and nothing changes.

    A file that was changed since is shown with its difference, and written over only if you say so.
    """
    from torchtriage.interface.skillpack.pack import pack

    _settle(clients, pack(), user=user, force=force)


@command.command()
@_client
@_user
def uninstall(clients: tuple[str, ...], user: bool) -> None:
    """Takes the skills out again; a file that somebody has changed stays."""
    _settle(clients, {}, user=user, force=True)


@command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Writes over files that somebody has changed, without asking.")
def export(folder: Path, force: bool) -> None:
    """Writes the pack as a plugin: the skills, and the manifests of plugins and marketplaces, into FOLDER."""
    from torchtriage.interface.skillpack.manifests import manifests
    from torchtriage.interface.skillpack.pack import pack

    files = {f"skills/{path}": text for path, text in pack().items()} | manifests()
    _put(folder.absolute(), files, folder.absolute(), force=force)


@command.command()
@_client
@_user
def check(clients: tuple[str, ...], user: bool) -> None:
    """Checks the pack's own form and budgets, and whether what is installed is this version's; 1 when it is not."""
    from torchtriage.interface.skillpack.pack import pack
    from torchtriage.interface.skillpack.place import Act, plan
    from torchtriage.interface.skillpack.valid import complaints

    files = pack()
    said = list(complaints(files))
    for folder, base in _places(clients, user=user):
        steps = plan(folder, files, base)
        if any(step.act is not Act.NEW for step in steps):
            said += [f"{folder / step.path}: {step.act.value}" for step in steps if step.act is not Act.SAME]
    for each in said:
        terminal.result(f"{each}\n")
    terminal.say(f"{count(len(files), 'file')} of the pack, {count(len(said), 'complaint')}.")
    sys.exit(FOUND if said else 0)


def _settle(clients: tuple[str, ...], files: Mapping[str, str], *, user: bool, force: bool) -> None:
    for folder, base in _places(clients, user=user):
        _put(folder, files, base, force=force)


def _places(clients: tuple[str, ...], *, user: bool) -> Iterable[tuple[Path, Path]]:
    base = Path.home() if user else Path.cwd()
    return [(folder, base) for folder in folders(clients, base, user=user)]


def _put(folder: Path, files: Mapping[str, str], base: Path, *, force: bool) -> None:
    from torchtriage.interface.skillpack.place import Act, carry_out, plan

    steps = plan(folder, files, base)
    changed = [step for step in steps if step.act is Act.CHANGED]
    for step in changed:
        terminal.result(_difference(step))
    if changed and not force:
        _agreed(folder, len(changed))
    carry_out(folder, steps, base)
    done = {act: sum(step.act is act for step in steps) for act in Act}
    said = ", ".join(f"{number} {act.value}" for act, number in done.items() if number)
    terminal.say(f"{folder}: {said or 'nothing of ours is there'}.")


def _agreed(folder: Path, number: int) -> None:
    """Raises where nobody can be asked, or says no."""
    if not sys.stdin.isatty():
        do = "Look at the differences, then install with --force to write over them, or move them away."
        raise TriageError(f"{count(number, 'file')} changed since the last installation", str(folder), do, USAGE)
    click.confirm(f"Write over {count(number, 'changed file')} in {folder}?", abort=True, err=True)


def _difference(step: Step) -> str:
    names = (f"{step.path} (there)", f"{step.path} (new)")
    lines = unified_diff(step.before.splitlines(), step.after.splitlines(), *names, lineterm="")
    return "".join(f"{each}\n" for each in lines)
