"""A process of its own for each file: what registers an accelerator with torch would show in the tests of others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

INSIDE = "TORCHTRIAGE_SIMULATION_TEST"
"""Names the file for outcomes, in a process that may start the simulation."""

LIBRARY = "TORCHTRIAGE_SIMULATION_LIBRARY"
"""The user's cache folder, where the compiled device is kept; to all other tests it is another one."""
os.environ.setdefault(LIBRARY, os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))

_outcomes: dict[Path, dict[str, tuple[str, str]]] = {}


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if INSIDE in os.environ:
        return None
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


def _outcomes_of(item: pytest.Function) -> dict[str, tuple[str, str]]:
    if item.path not in _outcomes:
        chosen = [each.nodeid for each in item.session.items if each.path == item.path]
        folder = item.config._tmp_path_factory.mktemp("simulation")  # type: ignore[attr-defined]
        _outcomes[item.path] = _run(chosen, folder / "outcomes.jsonl", item.config.rootpath)
    return _outcomes[item.path]


def _run(chosen: list[str], file: Path, root: Path) -> dict[str, tuple[str, str]]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--no-cov", *chosen]
    done = subprocess.run(command, cwd=root, env=own | {INSIDE: str(file)}, capture_output=True, text=True)
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


@pytest.fixture(scope="session")
def library_cache() -> Iterator[None]:
    """The compiled device comes from the user's cache, and is compiled into it if need be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", os.environ[LIBRARY])
        yield


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
    return started
