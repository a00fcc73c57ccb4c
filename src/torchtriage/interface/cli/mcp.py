"""torchtriage mcp: the server that a coding agent calls."""

from __future__ import annotations

from pathlib import Path

import click

from torchtriage.core.errors import TriageError


@click.command()
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder that may be read, with all below it (repeatable). Default: the current folder.",
)
@click.option("--allow-run", is_flag=True, help="Lets the client run jobs in these folders, as you.")
def command(roots: tuple[Path, ...], allow_run: bool) -> None:
    """Serves ask, check, run, read, explain and next_step to a coding agent, over stdin and stdout."""
    try:
        from torchtriage.interface.mcp.server import build
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("torchtriage"):
            raise
        do = "pip install 'torchtriage[mcp]'"
        raise TriageError(
            f"the MCP server needs a package that is not there: {error}", "torchtriage mcp", do
        ) from error
    from torchtriage.interface.mcp.paths import Roots

    build(Roots.of(roots or (Path.cwd(),)), allow_run=allow_run).run()
