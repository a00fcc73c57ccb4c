"""Files spread over processes: the same answers from every engine, and no file lost for another's sake."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from works import Said

from torchtriage.core.errors import TriageError
from torchtriage.examine.artefact.engines import Engine, Told, Work, fitting, mapped, ready

WORK = Work("works:said", Said)
HAS_RAY = find_spec("ray") is not None
ENGINES = ["local", pytest.param("ray", marks=pytest.mark.skipif(not HAS_RAY, reason="ray is not installed"))]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray of this machine that all tests of this module share."""
    import ray

    with pytest.MonkeyPatch.context() as env:
        env.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # where its workers find the work
        ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "ray":
        request.getfixturevalue("cluster")
    return Engine(request.param, workers=2)


over_engines = pytest.mark.parametrize("engine", ENGINES, indirect=True)


def files(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).write_bytes(f"this is {name}".encode("utf-8", "replace"))
    return [str(folder / name) for name in names]


@over_engines
def test_every_engine_says_the_same_in_the_order_of_the_files(engine: Engine, tmp_path: Path) -> None:
    paths = files(tmp_path, "c", "a", "shut", "b", "fails", "d\udcff")
    here = mapped(WORK, [*paths, str(tmp_path / "none"), paths[0]], Engine("one"))
    assert mapped(WORK, [*paths, str(tmp_path / "none"), paths[0]], engine) == here
    assert [each.value.text for each in here if each.value][:3] == ["this is c", "this is a", "this is b"]
    assert here[2] == Told(why="it is shut", do="Open it.")
    assert here[4].why == "reading failed: ZeroDivisionError()"


@over_engines
def test_one_that_dies_takes_no_other_file_with_it(engine: Engine, tmp_path: Path) -> None:
    paths = files(tmp_path, "a", "dies", "b", "once", "hungry", *(f"c{number}" for number in range(20)))
    told = dict(zip(paths, mapped(WORK, paths, engine), strict=True))
    lost = [Path(path).name for path, each in told.items() if each.lost]
    assert lost == ["dies", "hungry"]
    assert all(each.value.text == f"this is {Path(path).name}" for path, each in told.items() if not each.lost)
    assert "in each of 2 tries" in told[paths[1]].why
    assert "memory" in told[paths[1]].do


@over_engines
def test_a_file_of_which_nothing_comes_is_given_up(engine: Engine, tmp_path: Path) -> None:
    paths = files(tmp_path, "a", "hangs", "b")
    told = mapped(WORK, paths, Engine(engine.name, workers=2, patience=5.0 if engine.name == "ray" else 1.0))
    assert [each.lost for each in told] == [False, True, False]
    assert "nothing had come of it after" in told[1].why


@over_engines
def test_what_only_this_process_has_is_read_in_it(engine: Engine, tmp_path: Path) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/engines/a", b"in memory")
    told = mapped(WORK, ["memory://engines/a", *files(tmp_path, "b", "c")], engine)
    assert [each.value.text for each in told] == ["in memory", "this is b", "this is c"]


@over_engines
def test_relative_paths_are_those_of_this_process(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, "a", "b")
    monkeypatch.chdir(tmp_path)
    assert mapped(WORK, ["a", "b"], engine) == [Told(Said("a", "this is a")), Told(Said("b", "this is b"))]


def test_processes_that_never_begin_are_the_engines_matter_and_automatic_ones_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = files(tmp_path, "a", "b")
    monkeypatch.setattr("torchtriage.examine.artefact.engines.local._PROGRAM", "raise SystemExit(3)")
    with pytest.raises(TriageError, match="ended with code 3 before it began"):
        mapped(WORK, paths, Engine("local"))
    monkeypatch.setattr(fitting, "workers", lambda *_: 2)
    assert [each.value.text for each in mapped(WORK, paths, Engine("auto"))] == ["this is a", "this is b"]


@pytest.mark.parametrize(
    ("name", "sizes", "count"),
    [
        ("auto", [1], 0),
        ("auto", [2**30], 0),
        ("auto", [1000] * 50, 0),
        ("auto", [2**26] * 8, 4),
        ("auto", [2**30, 100], 0),
        ("one", [2**30] * 8, 0),
        ("local", [10, 10], 2),
        ("local", [2**32] * 8, 1),
    ],
)
def test_processes_are_started_where_they_are_worth_it_and_there_is_room(
    name: str, sizes: list[int], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(4))
    monkeypatch.setattr(fitting, "room", lambda: 2**33)
    paths = []
    for number, size in enumerate(sizes):
        with (tmp_path / str(number)).open("wb") as file:
            file.truncate(size)
        paths.append(file.name)
    assert fitting.workers(paths, Engine(name)) == count


def test_a_gzipped_file_counts_by_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(2))
    for name in ("a.json.gz", "b.json.gz"):
        (tmp_path / name).write_bytes(bytes(2**22))
    assert fitting.workers([str(each) for each in tmp_path.iterdir()], Engine("auto")) == 2


def test_the_memory_of_a_group_of_processes_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < fitting.room() < 2**50
    monkeypatch.setattr(fitting, "_number", lambda path, after="": 3000 if path.name == "memory.max" else 1000)
    assert fitting.room() == 2000


def test_an_engine_that_is_not_there_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TriageError, match="no engine is called 'spark'"):
        ready(Engine("spark"))
    with pytest.raises(TriageError, match="an address is for the engine ray"):
        ready(Engine("local", "10.0.0.1:6379"))
    monkeypatch.setattr("torchtriage.examine.artefact.engines.cluster.find_spec", lambda _: None)
    with pytest.raises(TriageError, match=r"torchtriage\[ray\]") as told:
        ready(Engine("ray"))
    assert told.value.code == 2


def test_without_an_engine_asked_for_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    log = files(tmp_path, "a.log")[0]
    code = f"from torchtriage import read; read([{log!r}]); import sys"
    code += "; print(*[name for name in sys.modules if name.split('.')[0] in ('ray', 'multiprocessing', 'selectors')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.skipif(not HAS_RAY, reason="ray is not installed")
def test_an_address_at_which_no_cluster_is_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    def nobody(**_: Any) -> None:
        raise ConnectionError("could not connect to 10.0.0.1:6379")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", nobody)
    with pytest.raises(TriageError, match=r"--address 10.0.0.1:6379: no Ray is to be had there"):
        mapped(WORK, ["a"], Engine("ray", "10.0.0.1:6379"))
