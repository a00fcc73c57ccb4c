"""The command line, called in this process."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from sources import FAULTY

from torchtriage.interface.cli import main


@dataclass(frozen=True)
class Said:
    """How a call ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Said]:
    """Runs `torchtriage WORDS` in an empty folder; stdin: the bytes that it may read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)

    def called(*words: str, stdin: bytes = b"") -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, out, err)

    return called


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A training loop without zero_grad."""
    (tmp_path / "faulty.py").write_text(FAULTY)
    return tmp_path / "faulty.py"


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """The same loop, mended."""
    (tmp_path / "sound.py").write_text(
        FAULTY.replace("        loss = ", "        optimizer.zero_grad()\n        loss = ")
    )
    return tmp_path / "sound.py"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job that says something on both of its streams and ends as it is told; it does not touch torch."""
    (tmp_path / "job.py").write_text(
        "import os, signal, sys\n"
        "print('job said this', flush=True)\n"
        "print('job warned of that', file=sys.stderr, flush=True)\n"
        "if sys.argv[1:] == ['kill']:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)\n"
    )
    return tmp_path / "job.py"


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A small training that forgets zero_grad."""
    (tmp_path / "training.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "model = nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.001)\n"
        "for _ in range(30):\n"
        "    loss = nn.functional.mse_loss(model(torch.ones(8, 4)), torch.zeros(8, 1))\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    return tmp_path / "training.py"
