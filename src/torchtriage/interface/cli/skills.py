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

    files = pack()
    for folder, base in _places(clients, user=user):
        _put(folder, files, base, force=force)


@command.command()
@_client
@_user
def uninstall(clients: tuple[str, ...], user: bool) -> None:
    """Takes the skills out again; a file that somebody has changed stays."""
    found = _there(clients, user=user)
    for folder, base in found:
        _put(folder, {}, base, force=True)
    if not found:
        terminal.say("No skills of ours are installed here.")


@command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Writes over files that somebody has changed, without asking.")
def export(folder: Path, force: bool) -> None:
    """Writes the pack as a plugin: the skills, and the manifests of plugins and marketplaces, into FOLDER."""
    from torchtriage.interface.skillpack.manifests import manifests
    from torchtriage.interface.skillpack.pack import pack

    if folder.is_symlink():
        do = "Name the real folder that is to hold the plugin."
        raise TriageError("a link, and links are not followed", str(folder), do)
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
    for folder, base in _there(clients, user=user):
        off = (step for step in plan(folder, files, base) if step.act is not Act.SAME)
        said += [f"{folder / step.path}: {'missing' if step.act is Act.NEW else step.act.value}" for step in off]
    for each in said:
        terminal.result(f"{each}\n")
    terminal.say(f"{count(len(files), 'file')} of the pack, {count(len(said), 'complaint')}.")
    sys.exit(FOUND if said else 0)


def _places(clients: tuple[str, ...], *, user: bool) -> Iterable[tuple[Path, Path]]:
    base = _base(user=user)
    return [(folder, base) for folder in folders(clients, base, user=user)]


def _there(clients: tuple[str, ...], *, user: bool) -> Iterable[tuple[Path, Path]]:
    """Of the clients that are named, or else wherever something was installed."""
    from torchtriage.interface.skillpack.clients import installed
    from torchtriage.interface.skillpack.place import LIST

    if clients:
        return _places(clients, user=user)
    base = _base(user=user)
    return [(folder, base) for folder in installed(base, user=user, named=LIST)]


def _base(*, user: bool) -> Path:
    """The home, or the working folder; raises TriageError where there is none."""
    try:
        base = Path.home() if user else Path.cwd()
    except (OSError, RuntimeError) as error:
        raise TriageError("there is no such folder any more", "home" if user else ".", "Go to a folder.") from error
    if not base.is_absolute() or (user and base == Path("/")):
        raise TriageError("HOME is no folder of a user", str(base), "Set HOME, or install with --project.")
    return base


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
        do = "Look at the differences, then give --force to write over them, or move them away."
        raise TriageError(f"{count(number, 'file')} there with another content than ours", str(folder), do, USAGE)
    click.confirm(f"Write over {count(number, 'changed file')} in {folder}?", abort=True, err=True)


def _difference(step: Step) -> str:
    names = (f"{step.path} (there)", f"{step.path} (new)")
    before, after = (each.splitlines(keepends=True) for each in (step.before, step.after))
    return "".join(f"{shown(each)}\n" for each in unified_diff(before, after, *names))


def shown(text: str) -> str:
    """One line of a difference, with what a terminal would not show, or obey, spelt out."""
    ended = text.endswith("\n") or text.startswith(("---", "+++", "@@"))
    plain = "".join(each if each.isprintable() or each == "\t" else ascii(each)[1:-1] for each in text.rstrip("\n"))
    return plain if ended else f"{plain} (no line end)"
