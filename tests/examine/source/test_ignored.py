"""What a repository's .gitignore files leave out is not examined, unless it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage.examine.source.files import found


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "out/b.py", "out/keep.py", "sub/c.py", "sub/d_test.py", "sub/deep/e.py", "sub/deep/f.ipynb"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("import torch\n")
    (tmp_path / ".git").mkdir()
    return tmp_path


def names(*paths: str) -> list[str]:
    return [path.as_posix() for path in found([Path(path) for path in paths])]


ALL = ["a.py", "out/b.py", "out/keep.py", "sub/c.py", "sub/d_test.py", "sub/deep/e.py", "sub/deep/f.ipynb"]


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, ALL),
        ({".gitignore": "out/\n"}, [name for name in ALL if not name.startswith("out/")]),
        ({".gitignore": "out/*\n!out/keep.py\n"}, [name for name in ALL if name != "out/b.py"]),
        ({".gitignore": "/c.py\n"}, ALL),
        ({".gitignore": "*_test.py\n# a.py\n\n"}, [name for name in ALL if name != "sub/d_test.py"]),
        ({"sub/.gitignore": "c.py\ndeep/\n"}, ["a.py", "out/b.py", "out/keep.py", "sub/d_test.py"]),
        ({".gitignore": "!\n\\\n[z-a].py\nout/\n"}, [name for name in ALL if not name.startswith("out/")]),
        ({".gitignore": "\ufeffout/\n"}, [name for name in ALL if not name.startswith("out/")]),
        ({".gitignore": "*.py\n", "sub/.gitignore": "!c.py\n"}, ["sub/c.py", "sub/deep/f.ipynb"]),
    ],
)
def test_a_folder_is_walked_by_the_rules_of_its_repository(files: dict[str, str], left: list[str], tree: Path) -> None:
    for name, text in files.items():
        (tree / name).write_text(text)
    assert names(".") == left


def test_the_rules_above_a_folder_hold_for_it(tree: Path) -> None:
    (tree / ".gitignore").write_text("sub/deep/\n")
    assert names("sub") == ["sub/c.py", "sub/d_test.py"]


def test_a_file_that_is_named_is_examined_whatever_the_rules_say(tree: Path) -> None:
    (tree / ".gitignore").write_text("out/\n")
    assert names("out/b.py") == ["out/b.py"]


def test_outside_of_a_repository_nothing_is_ignored(tree: Path) -> None:
    (tree / ".git").rmdir()
    (tree / ".gitignore").write_text("out/\n")
    assert names(".") == ALL
