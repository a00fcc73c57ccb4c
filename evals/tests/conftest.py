"""Nothing here may reach a network, and what is asked is small: a scenario or two of every kind."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torchtriage_evals import pack as packed
from torchtriage_evals import run
from torchtriage_evals.labelled import Labelled
from torchtriage_evals.run import Done, Wanted
from torchtriage_evals.scenario import Point, Scenario
from torchtriage_evals.source import Source
from torchtriage_evals.trial import Arm

SCENARIOS = (
    Scenario("slow", "slow", "route", "It is slow. Where do I start?", route=("performance-profiling",)),
    Scenario("slow-too", "slow", "route", "Why is it so slow?", route=("performance-profiling",)),
    Scenario("help", "help", "route", "It does not work.", question=True),
    Scenario("layers", "layers", "code", "Please look at this.", program="layers-in-a-list"),
    Scenario("sound", "sound", "healthy", "Please look at this.", program="layers-in-a-list"),
    Scenario(
        "log", "log", "evidence", "What happened?", artefact="a.log", cause="nan-loss", labels=("nan-loss", "hang")
    ),
    Scenario(
        "nan",
        "nan",
        "advice",
        "My loss is NaN.",
        points=(
            Point("first", "Find the first tensor that is not finite"),
            Point("anomaly", "Use detect_anomaly for the backward", pattern="detect_anomaly"),
            Point("rate", "Lower the learning rate before looking at anything", harmful=True),
        ),
    ),
    Scenario(
        "premise",
        "premise",
        "healthy",
        "As BF16 needs a GradScaler, where does it go?",
        points=(Point("none", "BF16 needs no scaler"), Point("put", "Put the scaler around backward", harmful=True)),
    ),
    Scenario("schedule", "schedule", "scope", "Which schedule is best?", refer_to="training-optimization"),
    Scenario("opens", "opens", "trigger", "My training hangs.", triggers=True),
    Scenario("closed", "closed", "trigger", "How do I train a puppy?", triggers=False),
    Scenario(
        "mixed",
        "mixed",
        "mix",
        "AMP and DDP and accumulation: NaN.",
        route=("debugging-techniques", "mixed-precision-and-optimization"),
        points=(Point("unscale", "Unscale before clipping"),),
    ),
)
LABELLED = tuple(
    Labelled(f"made-{number}", "Why is it slow?", point, answer, made=True)
    for number, (point, answer) in enumerate(
        [("measures before advising", "Measure first."), ("profiles", "Take a profile of ten steps, please.")] * 3
    )
) + tuple(
    Labelled(f"decoy-{number}", "Why is it slow?", point, answer, made=False, decoy=True)
    for number, (point, answer) in enumerate(
        [("measures before advising", "No need to measure."), ("profiles", "Profiles of users are private.")] * 3
    )
)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(self: socket.socket, address: Any) -> None:
        raise AssertionError(f"a connection to {address}")

    def named(host: Any, *_: Any, **__: Any) -> None:
        raise AssertionError(f"the name {host} was looked up")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect)
    monkeypatch.setattr(socket, "getaddrinfo", named)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C is heard, also where it was ignored from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def files() -> dict[str, str]:
    return packed.pack()


@pytest.fixture
def every(tmp_path: Path) -> Source:
    """All of them, also the program with a planted bug, for which torch is started."""
    folder = tmp_path / "artefacts"
    folder.mkdir()
    (folder / "a.log").write_text("step 7 loss nan\n")
    return Source(SCENARIOS, LABELLED, folder)


@pytest.fixture
def source(every: Source) -> Source:
    return every.chosen(sorted({one.kind for one in SCENARIOS} - {"code"}), None)


@pytest.fixture
def ran(source: Source, files: dict[str, str], tmp_path: Path) -> Callable[..., Done]:
    """Runs an agent on all scenarios in the arms that are given; other arguments are those of Wanted."""

    def start(agent: str, *arms: Arm, **changed: Any) -> Done:
        given = {"judge": "mockllm/judge", "folder": tmp_path / "run", "source": source} | changed
        chosen = given.pop("source")
        return run.run(Wanted(model=f"mockllm/{agent}", arms=arms or (Arm.RED,), **given), chosen, files)

    return start
