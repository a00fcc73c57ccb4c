"""A server on a folder with a faulty file in it, and the two eras in which a client may speak to it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sources import FAULTY
from talking import ERAS, Tree

from torchtriage.interface.cli import main


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The root of the server, with a faulty file in it; beside it lies what no client may see."""
    (tmp_path / "secret.py").write_text("password = 'hunter2'\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "faulty.py").write_text(FAULTY)
    return tmp_path / "home"


@pytest.fixture
def tree(home: Path) -> Tree:
    made = Tree(home)
    made.write()
    return made


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """The protocol of today, and that of the clients of yesterday."""
    mode: str = request.param
    return mode


@pytest.fixture
def python_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)


@pytest.fixture
def line(home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What the command line prints as JSON in the server's folder."""

    def printed(*words: str) -> Any:
        monkeypatch.chdir(home)
        capfd.readouterr()
        with pytest.raises(SystemExit):
            main(words)
        return json.loads(capfd.readouterr().out)

    return printed
