"""Two runs of Bad end with other weights; two runs of Good end with the same ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import Server

from torchtriage.catalog import page, walk


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("torch", "torch._dynamo")
    yield server
    server.close()


def code(section: str) -> str:
    return page.read(Path(walk.pages()["run-not-reproducible"])).snippet(section)


def test_two_runs_with_a_drawn_seed_differ_and_two_with_a_fixed_one_are_equal(server: Server, tmp_path: Path) -> None:
    def weights(section: str) -> str:
        """What a fork that runs the section of the page prints at its end."""
        done = server.run("-c", code(section), place=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    new = subprocess.run([sys.executable, "-c", code("Good")], capture_output=True, text=True, check=True).stdout
    assert weights("Bad") != weights("Bad")
    assert weights("Good") == new != ""
