"""The verb itself: what it needs, what it takes, and what its page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from torchtriage.interface.cli import main
from torchtriage.interface.cli.mcp import command

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"


def ended(*words: str) -> Any:
    with pytest.raises(SystemExit) as error:
        main(words)
    return error.value.code


def test_without_the_extra_it_says_how_to_install_it() -> None:
    script = "import sys; sys.modules['mcp'] = None; from torchtriage.interface.cli import main; main(['mcp'])"
    done = subprocess.run([sys.executable, "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2
    assert "do:    pip install 'torchtriage[mcp]'" in done.stderr


@pytest.mark.parametrize("root", ["nowhere", "file"])
def test_a_root_that_is_no_folder_is_refused(root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert ended("mcp", "--root", str(tmp_path / root)) == 2
    assert "not a folder" in capsys.readouterr().err


def test_every_configuration_on_the_page_starts_the_server() -> None:
    blocks = re.findall(r"```(json|toml|sh)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    started = 0
    for kind, block in blocks:
        for words in _commands(kind, block):
            assert words[:2] == ["torchtriage", "mcp"]
            command.make_context("mcp", words[2:])
            started += 1
    assert started == 4


def _commands(kind: str, block: str) -> list[list[str]]:
    if kind == "sh":
        return [line.partition("-- ")[2].split() for line in block.splitlines() if "-- torchtriage" in line]
    read: Any = json.loads(block) if kind == "json" else tomllib.loads(block)
    servers = next(iter(read.values()))
    return [[each["command"], *each["args"]] for each in servers.values()]
