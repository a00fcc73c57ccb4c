"""Where each coding agent looks for skills."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

CROSS = "agents"


class Client(Struct, frozen=True):
    """A coding agent: the folders of its skills below a project and below the user's home, and what shows its use."""

    project: str
    user: str
    shown_by: tuple[str, ...]


CLIENTS: dict[str, Client] = {
    "claude": Client(".claude/skills", ".claude/skills", (".claude", "CLAUDE.md")),
    "codex": Client(".agents/skills", ".agents/skills", (".codex",)),
    "cursor": Client(".cursor/skills", ".cursor/skills", (".cursor",)),
    "copilot": Client(".github/skills", ".copilot/skills", (".copilot", ".github/copilot-instructions.md")),
    "gemini": Client(".agents/skills", ".agents/skills", (".gemini", "GEMINI.md")),
    CROSS: Client(".agents/skills", ".agents/skills", (".agents", "AGENTS.md")),
}


def folders(names: tuple[str, ...], base: Path, *, user: bool) -> list[Path]:
    """The folders of skills of the clients NAMES below BASE, each once; without names, of those in use there."""
    wanted = names or tuple(name for name, client in CLIENTS.items() if _in_use(client, base)) or (CROSS,)
    if "all" in wanted:
        wanted = tuple(CLIENTS)
    below = (CLIENTS[name].user if user else CLIENTS[name].project for name in wanted)
    return [base / each for each in dict.fromkeys(below)]


def installed(base: Path, *, user: bool, named: str) -> list[Path]:
    """The folders of skills below BASE in which a list called NAMED says that something was installed."""
    return [folder for folder in folders(("all",), base, user=user) if os.path.lexists(folder / named)]


def _in_use(client: Client, base: Path) -> bool:
    return any((base / each).exists() for each in client.shown_by)
