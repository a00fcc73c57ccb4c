"""Clients of the MCP server, in this process and over stdio, and a job whose processes can be watched dying."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ListRootsResult, Root

import torchtriage
from torchtriage.interface.mcp.paths import Roots
from torchtriage.interface.mcp.server import build

PATIENCE = 120  # seconds after which a test that waits has failed
ERAS = ("auto", "legacy")


def talk(body: Callable[[Client], Awaitable[None]], server: Any, **options: Any) -> None:
    """Lets BODY speak to SERVER as a client."""

    async def spoken() -> None:
        with anyio.fail_after(PATIENCE):
            async with Client(server, **options) as client:
                await body(client)

    anyio.run(spoken)


def called(server: Any, tool: str, arguments: dict[str, Any], **options: Any) -> CallToolResult:
    """What one call answers."""
    answers: list[CallToolResult] = []

    async def body(client: Client) -> None:
        answers.append(await client.call_tool(tool, arguments))

    talk(body, server, **options)
    return answers[0]


def text(answer: CallToolResult) -> str:
    """All that an answer says."""
    return "\n".join(getattr(each, "text", "") for each in answer.content)


def server_on(*roots: Path, allow_run: bool = False) -> Any:
    """A server in this process."""
    return build(Roots.of(roots), allow_run=allow_run)


def process_on(root: Path, *words: str) -> StdioServerParameters:
    """A server of its own, as a client starts it."""
    env = {"PYTHONPATH": str(Path(torchtriage.__file__).parent.parent), "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    args = ["-W", "error", "-m", "torchtriage", "mcp", "--root", str(root), *words]
    return StdioServerParameters(command=sys.executable, args=args, env=env, cwd=root)


def opening(*folders: Path) -> dict[str, Any]:
    """The options of a client that has FOLDERS open."""

    async def listed(_context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=folder.as_uri()) for folder in folders])

    return {"list_roots_callback": listed}


@dataclass(frozen=True)
class Tree:
    """A job whose grandchild sleeps for ever, in a session of its own: each writes its number, then a pipe's name."""

    folder: Path

    def write(self) -> None:
        """Lays the job's script and the pipe that it opens when all of it is alive."""
        (self.folder / "tree.py").write_text(
            "import os, subprocess, sys, time\n"
            "if len(sys.argv) == 1:\n"
            "    child = subprocess.Popen([sys.executable, 'tree.py', 'child'])\n"
            "    child.wait()\n"
            "elif sys.argv[1] == 'child':\n"
            "    subprocess.Popen([sys.executable, 'tree.py', 'last'], start_new_session=True)\n"
            "    time.sleep(1000)\n"
            "else:\n"
            "    with open('alive', 'w') as pipe:\n"
            "        pipe.write(f'{os.getpid()} {os.getppid()}')\n"
            "    time.sleep(1000)\n"
        )
        os.mkfifo(self.folder / "alive")

    async def alive(self) -> list[int]:
        """Waits until the last of them lives; descriptors that become readable when each one ends."""
        said = await anyio.to_thread.run_sync((self.folder / "alive").read_text, abandon_on_cancel=True)
        return [os.pidfd_open(int(pid)) for pid in said.split()]


def ended(descriptors: list[int]) -> bool:
    """Waits until the processes behind DESCRIPTORS have ended."""
    poll = select.poll()
    for each in descriptors:
        poll.register(each, select.POLLIN)
    left = set(descriptors)
    while left and (found := poll.poll(PATIENCE * 1000)):
        for each, _ in found:
            poll.unregister(each)
            os.close(each)
            left.discard(each)
    return not left
