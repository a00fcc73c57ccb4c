"""A job that a client starts: where its record goes, how far it is, how it ended."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult

from torchtriage.examine.run.launcher.live import Line
from torchtriage.interface.mcp.answers import answer
from torchtriage.interface.mcp.commands import checked
from torchtriage.interface.mcp.jobs import TIMED_OUT, Watch, call
from torchtriage.interface.mcp.paths import Roots
from torchtriage.report.keep import folder as new_folder
from torchtriage.report.text import count

RUNS = "torchtriage-runs"


async def run(
    ctx: Context, roots: Roots, folder: str, command: Sequence[str], options: Sequence[str], limit: int
) -> CallToolResult:
    """Starts COMMAND in FOLDER, tells the client every second how far it is, and answers with its case.

    OPTIONS: of `torchtriage run`. LIMIT: seconds. Raises TriageError where it is not to be started, or did not start.
    """
    home = roots.folder(folder)
    words = checked(command, home, roots)
    runs = roots.path(RUNS, home) if (home / RUNS).is_symlink() or (home / RUNS).exists() else home / RUNS
    with new_folder(None, runs) as out:
        told = ["run", "--json", f"--out={out}", *options, "--", *words]
        done = await call(told, home, limit, _watch(ctx, out, limit), out / "output.log")
    limited = f"was ended after {count(limit, 'second')}, its time limit"
    ended = limited if done.code == TIMED_OUT else f"ended with {done.code}"
    files = (
        f"The whole case: {out / 'case.json'}; for a person: {out / 'report.html'}; its output: {out / 'output.log'}."
    )
    return answer(done.answer, str(out / "case.json"), f"The job {ended}.", files, quote=done.said)


def _watch(ctx: Context, out: Path, limit: int) -> Watch:
    line = Line(out, io.StringIO())

    async def watch(seconds: float) -> None:
        await to_thread.run_sync(line.read)
        said = "the job has been started" if line.step is None else line.text()
        await ctx.report_progress(seconds, limit, said)

    return watch
