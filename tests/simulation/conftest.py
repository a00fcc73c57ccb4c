"""A process of its own for each file, and one for the proofs: a registered accelerator would show in other tests.

They are forks of one that has torch, so that it is imported once.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import forked
import on_cuda
import pytest

INSIDE = "TORCHTRIAGE_SIMULATION_TEST"
"""Names the file for outcomes, in a process that may start the simulation."""

ON_CUDA = "TORCHTRIAGE_ON_CUDA"
"""Names the file for what has been proven on a CUDA device (`make gpu`)."""

LIBRARY = "TORCHTRIAGE_SIMULATION_LIBRARY"
"""The user's cache folder, where the compiled device is kept; to all other tests it is another one."""
os.environ.setdefault(LIBRARY, os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))

Group = tuple[Path, bool]
"""The tests that share a process: those of a file or of the folder of proofs, apart for the simulation and for CUDA."""

PYTEST = "import sys, pytest\nsys.exit(pytest.main())"

_outcomes: dict[Group, dict[str, tuple[str, str]]] = {}


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if INSIDE in os.environ:
        return None
    if pyfuncitem.get_closest_marker("gpu") and not has_cuda():
        pytest.skip("needs a CUDA device")
    outcome, text = _outcomes_of(pyfuncitem).get(pyfuncitem.nodeid, ("failed", "its process ended before it"))
    if outcome == "skipped":
        pytest.skip(text)
    if outcome == "failed":
        pytest.fail(text, pytrace=False)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> object | None:
    """Fixtures of this folder are made where its tests run, and there only."""
    if INSIDE in os.environ or not fixturedef.baseid.startswith("tests/simulation"):
        return None
    fixturedef.cached_result = (elsewhere := object(), fixturedef.cache_key(request), None)
    return elsewhere


@cache
def has_cuda() -> bool:
    return bool(pytest.importorskip("torch").cuda.is_available())


def _group(item: pytest.Item) -> Group:
    path = item.path.parent if item.path.parent.name == "proofs" else item.path
    return path, item.get_closest_marker("gpu") is not None


def _outcomes_of(item: pytest.Function) -> dict[str, tuple[str, str]]:
    group = _group(item)
    if group not in _outcomes:
        chosen = [each.nodeid for each in item.session.items if _group(each) == group]
        folder = item.config._tmp_path_factory.mktemp("simulation")  # type: ignore[attr-defined]
        _outcomes[group] = _run(chosen, folder / "outcomes.jsonl", item.config.rootpath)
    return _outcomes[group]


@cache
def _server() -> forked.Server:
    return forked.Server("torch", "torch._dynamo", "torch.utils.data", "pytest", limit=None)


def _run(chosen: list[str], file: Path, root: Path) -> dict[str, tuple[str, str]]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--no-cov", *chosen]
    done = _server().run("-c", PYTEST, *words, place=root, **own | {INSIDE: str(file)})
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    found = {row["test"]: (row["outcome"], row["text"]) for row in rows}
    missing = ("failed", f"its process ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return {test: found.get(test, missing) for test in chosen}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the process of a file, tells the one that started it: a failure of any phase, or what became of the call."""
    if INSIDE not in os.environ or (report.passed and report.when != "call"):
        return
    text = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext)
    row = {
        "test": report.nodeid,
        "outcome": report.outcome,
        "text": text + "".join(each[1] for each in report.sections),
    }
    with Path(os.environ[INSIDE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def pytest_sessionfinish() -> None:
    """Leaves in the file of ON_CUDA which pages have been proven on a CUDA device."""
    if _server.cache_info().currsize:
        _server().close()
    if ON_CUDA in os.environ and INSIDE not in os.environ and has_cuda():
        groups = [tests for (_, is_gpu), tests in _outcomes.items() if is_gpu]
        outcomes = {test: outcome for tests in groups for test, (outcome, _) in tests.items()}
        found = on_cuda.summary(outcomes, on_cuda.describe_device())
        Path(os.environ[ON_CUDA]).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def library_cache() -> Iterator[None]:
    """The compiled device comes from the user's cache, and is compiled into it if need be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", os.environ[LIBRARY])
        yield


@pytest.fixture(scope="module")  # that of a session would be made by other processes, too
def python() -> str:
    """The Python of jobs and of ranks: each of its programs is another fork of the process that has torch."""
    return str(Path(os.environ[forked.FROM]) / "python")


@cache
def freeze() -> None:
    """Torch is there to the end, with what the first optimizer imports: no collection of garbage looks at it again."""
    import_module("torch._dynamo")
    gc.collect()
    gc.freeze()


@pytest.fixture
def simulator(library_cache: None) -> Any:
    """Two devices on which nothing costs anything, with an empty ledger and the clock at 0."""
    torch = pytest.importorskip("torch")

    from torchtriage.simulation import Costs, build, start

    lacking = build.obstacles()
    if lacking and not list(build.cache_folder().glob("*.so")):
        pytest.skip(f"the simulated device cannot be compiled here, for lack of {', '.join(lacking)}")
    started = start(devices=2, costs=Costs.free())
    torch.manual_seed(0)
    freeze()
    return started
