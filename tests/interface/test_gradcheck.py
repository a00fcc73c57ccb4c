"""`torchtriage gradcheck`: in a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Server

HALF = """
import torch


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return x * grad
"""
RIGHT = HALF.replace("return x * grad", "return 2 * x * grad")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    held = Server("torch", "torch._dynamo")
    yield held
    held.close()


@pytest.fixture
def forks(call: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """As `call`, with a `python` on PATH that has torch already."""
    monkeypatch.setenv("PATH", str(server.folder), prepend=os.pathsep)
    return call


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").touch()
    (tmp_path / "pkg/ops.py").write_text(HALF)
    return tmp_path


def test_a_wrong_gradient_is_a_finding_with_its_entry_and_what_explains_it(call: Any, ops: Path) -> None:
    said = call("gradcheck", "pkg/ops.py:Half", "--json", "--out", "told")
    case = json.loads(said.out)
    (finding,) = case["findings"]
    assert (said.code, finding["fault"]) == (1, "gradient-wrong")
    assert "0.5 times what they should be" in finding["evidence"][0]["fact"]
    assert finding["evidence"][0]["place"]["path"] == str(ops / "pkg/ops.py")
    assert case["measurements"]["gradcheck"]["checks"][0]["explains"] == "factor"
    assert (ops / "told/report.html").exists()
    assert not list((ops / "pkg").glob("__pycache__"))


def test_a_module_that_writes_leaves_the_users_files_as_they_are(forks: Any, ops: Path) -> None:
    (ops / "data.txt").write_text("theirs")
    before = "import pathlib\npathlib.Path('new.txt').write_text(open('data.txt').read())\n"
    (ops / "pkg/ops.py").write_text(before + RIGHT)
    assert forks("gradcheck", "pkg.ops:Half").code == 0
    assert not (ops / "new.txt").exists()
    (ops / "pkg/ops.py").write_text("open('data.txt', 'w').write('ours')\n" + RIGHT)
    said = forks("gradcheck", "pkg.ops:Half")
    assert said.code == 3
    assert "writes nothing there" in said.err
    assert (ops / "data.txt").read_text() == "theirs"


def test_a_crash_and_a_hang_end_one_check_and_not_the_others(forks: Any, ops: Path) -> None:
    (ops / "pkg/ops.py").write_text(
        RIGHT.replace("(x,) = ctx", "if not grad.is_contiguous(): __import__('os').abort()\n        (x,) = ctx")
    )
    said = forks("gradcheck", "pkg.ops:Half")
    assert said.code == 0
    assert "was ended by SIGABRT during this check" in " ".join(said.out.split())
    assert "double-backward" in said.err.partition("right: ")[2]
    (ops / "pkg/ops.py").write_text("while True: pass\n")
    said = forks("gradcheck", "pkg.ops:Half", "--timeout", "1")
    assert said.code == 3
    assert "did not end within 1 s while importing the module" in said.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["ops"], 2, "MODULE:FUNCTION"),
        (["nowhere:Half"], 3, "there is no module nowhere"),
        (["nowhere.py:Half"], 3, "there is no such file"),
        (["pkg.ops:Haf"], 2, "Name one of: Half"),
        (["pkg.ops:Half", "--shapes", "a;b"], 2, "neither a shape nor a value"),
        (["pkg.ops:Half", "--shapes", "int:3"], 3, "make_inputs"),
        (["pkg.ops:Half", "--shapes", "3", "--inputs", "pkg.ops:make"], 2, "exclude each other"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_the_way_out(
    forks: Any, ops: Path, words: list[str], code: int, says: str
) -> None:
    said = forks("gradcheck", *words)
    assert said.code == code
    assert says in said.err
