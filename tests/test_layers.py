"""What the import contracts of `make layers` cannot say: imports inside functions, job-side code, names."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import torchtriage

SOURCE = Path(torchtriage.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent.name != "scripts")  # those are no part of us
TOOLKIT = [*SOURCE.glob("toolkit/state/*.py"), SOURCE / "toolkit/seeds.py", SOURCE / "toolkit/proving.py"]
TRIAL = [SOURCE / "examine/trial/leg/fork.py"]
"""Part of a training that imports it: with torch and torchtriage's own packages, unlike what is put into any job."""
SIMULATION = [*SOURCE.glob("simulation/**/*.py")]
"""Part of a training that is rehearsed: on its torch and the standard library, and on nothing else of torchtriage."""
JOB_SIDE = [
    *SOURCE.glob("specialists/*/probes/*.py"),
    *SOURCE.glob("examine/run/job/**/*.py"),
    *SOURCE.glob("examine/run/attach/*.py"),
    *SOURCE.glob("examine/trial/*/job/*.py"),
    *SOURCE.glob("specialists/*/interventions/*.py"),
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


def modules_imported(path: Path, root: Path) -> set[Path]:
    """The modules below ROOT, a folder of packages, that a file imports anywhere, for types or for good."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            folder = path.parents[node.level - 1] if node.level else root
            home = folder.joinpath(*(node.module or "").split("."))
            found |= {home / each.name for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {root.joinpath(*each.name.split(".")) for each in node.names}
    return {file for each in found if (file := module_at(each) or module_at(each.parent)) is not None}


def module_at(place: Path) -> Path | None:
    return next((each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file()), None)


def circle(folder: Path, root: Path) -> list[Path]:
    """Modules in FOLDER of which each imports the next, and the last the first; none where there is no such circle."""
    files = set(folder.rglob("*.py"))
    try:
        TopologicalSorter({each: modules_imported(each, root) & files - {each} for each in files}).prepare()
    except CycleError as error:
        return [each.relative_to(root) for each in error.args[1]]
    return []


@pytest.mark.parametrize(
    "source",
    ["from a import c", "import a.c", "from . import c", "from .c import C", "def f():\n    from a.c import C"],
)
def test_circles_are_seen(tmp_path: Path, source: str) -> None:
    types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .b import B\n"
    for name, back in (("one", "import os\n"), ("two", types)):
        package = tmp_path / name / "a"
        package.mkdir(parents=True)
        for module, text in (("__init__", ""), ("b", source), ("c", back)):
            (package / f"{module}.py").write_text(text)
    assert circle(tmp_path / "one/a", tmp_path / "one") == []
    assert {each.name for each in circle(tmp_path / "two/a", tmp_path / "two")} == {"b.py", "c.py"}


def test_no_module_of_a_run_imports_itself_on_any_way_not_even_for_types() -> None:
    assert circle(SOURCE / "examine/run", SOURCE.parent) == []


def test_torch_is_imported_only_inside_functions_and_only_where_a_job_is() -> None:
    touching = {path for path in FILES if "torch" in imported(path)}
    assert touching <= {*JOB_SIDE, *TOOLKIT, *TRIAL, *SIMULATION}
    assert touching
    assert not [path for path in FILES if "torch" in imported(path, at_top=True)]


def test_code_inside_the_job_never_imports_what_the_job_may_have_in_another_version() -> None:
    ours = {"msgspec", "click", "rich", "numpy", "jinja2", "plotly", "fsspec"}
    assert {str(path): bad for path in JOB_SIDE if (bad := imported(path) & ours)} == {}
    own = {name for path in JOB_SIDE for name in imported(path) if name.startswith("torchtriage.")}
    assert own == {"torchtriage.examine.run.job.events"}  # which the watch puts there while probes are imported
    for path in SOURCE.glob("examine/run/job/events/*.py"):
        assert not imported(path) & {"torch", "torchtriage"}


def test_the_simulation_is_loaded_by_whoever_asks_for_it_and_loads_nothing_of_ours() -> None:
    assert {name for path in SIMULATION for name in imported(path)} & {"torchtriage", "msgspec", "numpy"} == set()
    others = [path for path in FILES if path not in SIMULATION]
    assert [path for path in others if "torchtriage.simulation" in imported(path, at_top=True)] == []


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
