"""Lines of the files that a job has loaded, by what is written there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from torchtriage.examine.run.job.code import searching

RATE = re.compile(r"\blr\b")


@pytest.mark.parametrize(
    ("text", "argv", "line"),
    [
        pytest.param("a = 1\nRATE = 6e-06\n", [], 2, id="once"),
        pytest.param("RATE = 0.000_006\n", [], 1, id="in another form"),
        pytest.param("EPS = 6e-06\nlr = 6e-6\n", [], 2, id="twice, once beside the word"),
        pytest.param("a = 6e-06\nb = 6e-6\n", [], 0, id="twice"),
        pytest.param("lr = 6e-6\ndef f(lr=6e-6): ...\n", [], 0, id="twice beside the word"),
        pytest.param("x = 1  # was 6e-06\n", [], 0, id="in a comment"),
        pytest.param("lr = 1.6e-06\nv6e = x6e-06\n", [], 0, id="a part of another one"),
        pytest.param("lr = 6e-06\n", ["--lr", "6e-6"], 0, id="on the command line, too"),
        pytest.param("lr = 6e-06\n", ["--lr=0.000006"], 0, id="on the command line, in one word"),
    ],
)
def test_a_number_stands_where_only_one_line_writes_it(
    text: str, argv: list[str], line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.py").write_text(text)
    module = ModuleType("settings")
    module.__file__ = str(tmp_path / "settings.py")
    monkeypatch.setitem(sys.modules, "settings", module)
    monkeypatch.setattr(sys, "argv", ["train.py", *argv])
    monkeypatch.setattr(searching, "_files", lambda: [str(tmp_path / "settings.py")])
    path, found = searching.line_of(6e-06, RATE)
    assert (Path(path).name, found) == ("settings.py" if line else "", line)


def test_what_is_installed_is_not_read_and_no_lazy_module_is_woken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    (tmp_path / "mine.py").write_text("lr = 6e-06\n")
    mine = ModuleType("mine")
    mine.__file__ = str(tmp_path / "mine.py")
    monkeypatch.setitem(sys.modules, "mine", mine)
    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    found = searching._files()
    assert str(tmp_path / "mine.py") in found
    assert not [each for each in found if "-packages" in each or "torchtriage/examine" in each]


def test_lines_with_a_pattern_are_told_unless_they_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.py").write_text("p.requires_grad = False\n# requires_grad = False\nq.requires_grad = False\n")
    monkeypatch.setattr(searching, "_files", lambda: [str(tmp_path / "settings.py")])
    pattern = re.compile(r"requires_grad = False")
    assert [line for _, line in searching.lines_with(pattern, most=2)] == [1, 3]
    assert searching.lines_with(pattern, most=1) == []
