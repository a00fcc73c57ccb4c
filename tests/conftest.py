"""Hand-made nouns that many tests start from."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from machine import Machine

from torchtriage.core.evidence import Evidence, Place
from torchtriage.core.fault import Confidence, EditSafety, Fault, FaultClass, Persona, Remedy, Sign
from torchtriage.core.plan import Plan, Stage, Step

# How long an example takes says more about the machine than about the code.
settings.register_profile("no-clock", deadline=None)
settings.load_profile("no-clock")


TESTS = Path(__file__).parent
COVERING = frozenset(("core", "catalog", "routing", "diagnose"))  # they cover the packages of their names by themselves


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All other tests run without a tracer, which doubles their time and adds no line to what is covered."""
    for item in items:
        if item.path.relative_to(TESTS).parts[0] not in COVERING:
            item.add_marker("no_cover")


def pytest_collection_finish() -> None:
    """What the tests are is there to the end: no collection goes through it again, a fifth of a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tests compile the catalogue into a folder of theirs, never into the user's cache."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.getbasetemp()
    held = Machine(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder)
    yield held
    held.close()


@pytest.fixture(autouse=True)
def beside_other_workers(machine: Machine) -> Iterator[None]:
    machine.share()
    yield
    machine.leave()


@pytest.fixture(scope="module")
def lean_forks() -> Iterator[None]:
    """Forks find little more than a job of its own would: trials look through all modules of the user, and to them each
    test file that was collected is one. With those of all tests a trial took twenty times as long.
    """
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
    hidden = {name: sys.modules.pop(name) for name, file in files.items() if file.startswith(f"{TESTS}/")}
    gc.collect()
    gc.freeze()
    yield
    sys.modules.update(hidden)


@pytest.fixture
def remedy() -> Remedy:
    return Remedy(
        "unscale-first", "Unscale first", "Always", "None", 1, "The norm is that of the loss", EditSafety.SAFE
    )


@pytest.fixture
def fault(remedy: Remedy) -> Fault:
    return Fault(
        slug="clip-before-unscale",
        specialist="mixed-precision-and-optimization",
        title="Gradients are clipped while still scaled",
        kind=FaultClass.WRONG,
        confidence=Confidence.HIGH,
        persona=Persona.DEFAULT,
        signs=(Sign("source/clip-before-unscale"), Sign("run/clips", 0.3)),
        remedies=(remedy,),
        explains=("not-learning",),
    )


@pytest.fixture
def seen() -> Callable[..., Evidence]:
    """Evidence from a few words."""

    def make(detector: str = "source/clip-before-unscale", fact: str = "a clip", **fields: Any) -> Evidence:
        place = {k: fields.pop(k) for k in list(fields) if k in Place.__struct_fields__}
        return Evidence(detector, Place(**place), fact, **fields)

    return make


@pytest.fixture
def plan() -> Plan:
    return Plan(
        (
            Step("performance-profiling", Stage.DIAGNOSE, "measure first"),
            Step("mixed-precision-and-optimization", Stage.TREAT, "when it computes", opens_on=("compute-bound",)),
        )
    )
