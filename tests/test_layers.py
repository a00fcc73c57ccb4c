"""What the import contracts of `make layers` cannot say: imports inside functions, job-side code, names."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import torchtriage

SOURCE = Path(torchtriage.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent.name != "scripts")  # those are no part of us
TOOLKIT = [*SOURCE.glob("toolkit/state/*.py"), SOURCE / "toolkit/seeds.py", SOURCE / "toolkit/proving.py"]
TRIAL = [SOURCE / "examine/trial/leg/fork.py"]
"""Part of a training that imports it: with torch and torchtriage's own packages, unlike what is put into any job."""
JOB_SIDE = [
    *SOURCE.glob("specialists/*/probes/*.py"),
    *SOURCE.glob("examine/run/job/**/*.py"),
    *SOURCE.glob("examine/run/attach/*.py"),
    *SOURCE.glob("examine/trial/*/job/*.py"),
]


READER = SOURCE / "examine/artefact/pickle/child.py"
"""The one safe reader of pickles, which runs in a process of its own."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path, *, at_top: bool = False) -> frozenset[str]:
    """The modules and top packages that a file imports; AT_TOP leaves out what stands inside a function or TYPE_CHECKING."""
    tree = parsed(path)
    nodes = list(tree.body if at_top else ast.walk(tree))
    if not at_top:
        typing_only = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.dump(n.test).count("TYPE_CHECKING")]
        hidden = {id(inner) for block in typing_only for inner in ast.walk(block)}
        nodes = [node for node in nodes if id(node) not in hidden]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return frozenset(part for name in names for part in (name, name.partition(".")[0]))


def test_imports_are_seen(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("import torch.nn\ndef f():\n    from pickle import loads\n")
    assert imported(tmp_path / "x.py") == {"torch", "torch.nn", "pickle"}
    assert imported(tmp_path / "x.py", at_top=True) == {"torch", "torch.nn"}


def test_torch_is_imported_only_inside_functions_and_only_where_a_job_is() -> None:
    touching = {path for path in FILES if "torch" in imported(path)}
    assert touching <= {*JOB_SIDE, *TOOLKIT, *TRIAL}
    assert touching
    assert not [path for path in FILES if "torch" in imported(path, at_top=True)]


def test_code_inside_the_job_never_imports_what_the_job_may_have_in_another_version() -> None:
    ours = {"msgspec", "click", "rich", "numpy", "jinja2", "plotly", "fsspec"}
    assert {str(path): bad for path in JOB_SIDE if (bad := imported(path) & ours)} == {}
    own = {name for path in JOB_SIDE for name in imported(path) if name.startswith("torchtriage.")}
    assert own == {"torchtriage.examine.run.job.events"}  # which the watch puts there while probes are imported
    for path in SOURCE.glob("examine/run/job/events/*.py"):
        assert not imported(path) & {"torch", "torchtriage"}


@pytest.mark.parametrize(
    "banned",
    ["pickle", "shelve", "marshal", "socket", "urllib.request", "http", "requests", "ssl", "ftplib", "smtplib"],
)
def test_no_pickle_is_read_and_no_network_is_opened(banned: str) -> None:
    allowed = [READER] if banned == "pickle" else []
    assert [path for path in FILES if banned in imported(path)] == allowed


def test_no_text_is_ever_run_as_code() -> None:
    forbidden = {"eval", "exec", "compile"}
    called = {
        (path.name, node.func.id)
        for path in FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in forbidden
    }
    assert called == set()


@pytest.mark.parametrize("word", ["utils", "helpers", "manager", "base", "common"])
def test_no_module_has_a_name_that_says_nothing(word: str) -> None:
    assert [str(path) for path in SOURCE.rglob("*") if path.stem == word] == []
