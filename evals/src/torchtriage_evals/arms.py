"""What surrounds the query in each arm: the system's message and the tools. The query itself is always the same."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from inspect_ai.tool import Tool, ToolDef, mcp_connection, mcp_server_stdio
from msgspec import Struct

from torchtriage_evals import others
from torchtriage_evals.pack import ROUTER, description
from torchtriage_evals.placebo import placebo
from torchtriage_evals.trial import Arm

HELPS = "You help people with their programs. Use your tools where they help, then answer in full."
OPEN, SKILL = "open_file", "open_skill"
_IN_CONTEXT = "{helps}\n\nThe following is loaded; open what it names with {open}.\n\n{text}"


class Context(Struct, frozen=True):
    """The system's message and the tools of one sample; opened: the skills of ours that the agent has opened."""

    system: str
    tools: list[Any]
    opened: list[str]


class Arms:
    """Builds the context of any arm from one skill pack."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)
        first = f"{ROUTER}/SKILL.md"
        self._ordered = {first: self.files[first]} | {path: text for path, text in self.files.items() if path != first}

    @asynccontextmanager
    async def context(self, arm: Arm, folder: Path) -> AsyncIterator[Context]:
        """The context of one sample whose files are in FOLDER; the arm TOOLS has a server for as long as it lasts."""
        if arm is not Arm.TOOLS:
            yield self._quiet(arm)
            return
        command = ["-m", "torchtriage", "mcp", "--root", str(folder)]
        server = mcp_server_stdio(name="torchtriage", command=sys.executable, args=command, cwd=folder)
        async with mcp_connection(server):
            yield Context(HELPS, [server], [])

    def _quiet(self, arm: Arm) -> Context:
        opened: list[str] = []
        if arm is Arm.RED:
            return Context(HELPS, [], opened)
        if arm is Arm.OFFERED:
            return Context(HELPS, [self._skills(opened), _opener(self.files)], opened)
        files = self._ordered if arm is Arm.GREEN else placebo(self._ordered)
        system = _IN_CONTEXT.format(helps=HELPS, open=OPEN, text=next(iter(files.values())))
        return Context(system, [_opener(files)], opened)

    def _skills(self, opened: list[str]) -> Tool:
        """A tool that opens skills: ours among others, in the order of their names."""
        ours = {path.partition("/")[0]: text for path, text in self.files.items() if path.endswith("/SKILL.md")}
        sheets = dict(sorted((ours | {name: others.sheet(name) for name in others.OTHERS}).items()))

        async def open_skill(name: str) -> str:
            if name in ours:
                opened.append(name)
            return sheets.get(name, f"There is no skill {name!r}; there are {', '.join(sheets)}.")

        listed = "\n".join(f"- {name}: {description(text)}" for name, text in sheets.items())
        said = f"Opens a skill: instructions for one kind of task. Open one only if it fits the task.\n{listed}"
        return ToolDef(open_skill, name=SKILL, description=said, parameters={"name": "the skill's name"}).as_tool()


def _opener(files: Mapping[str, str]) -> Tool:
    async def open_file(path: str) -> str:
        wanted = path.strip().removeprefix("./")
        near = [each for each in files if each in (wanted, f"{wanted}/SKILL.md") or each.endswith(f"/{wanted}")]
        if len(near) == 1:
            return files[near[0]]
        among = near or sorted(files)
        return f"There is no file {path!r}; there are {', '.join(among)}."

    said = "Opens a file that belongs to what is loaded."
    return ToolDef(open_file, name=OPEN, description=said, parameters={"path": "its path"}, max_output=0).as_tool()
