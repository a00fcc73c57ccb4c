"""torchtriage repro, as it is called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from repeated import Forked, Server

from torchtriage.catalog import page, walk
from torchtriage.examine.trial.leg.execute import Ended
from torchtriage.examine.trial.repeat import pairs
from torchtriage.examine.trial.repeat.pairs import Runner
from torchtriage.examine.trial.repeat.record import Told

TRAINING = """
import pathlib, time, uuid
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
pathlib.Path(f"log-{uuid.uuid4()}.txt").write_text(str(time.time()))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


class Halved(Forked):
    """Forks the legs that only look; those that hold something still are processes, in which that begins at once."""

    def leg(
        self, name: str, turns: int | None, wanted: Mapping[str, Any], fixed: Sequence[str] = ()
    ) -> tuple[Told, Ended]:
        if fixed:
            return Runner.leg(self, name, turns, wanted, fixed)
        return super().leg(name, turns, wanted)


def snippet(section: str) -> str:
    return page.read(Path(walk.pages()["run-not-reproducible"])).snippet(section)


def test_a_job_that_repeats_says_how_much_was_compared_and_leaves_nothing_behind(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    said = call("repro", "--steps", "4", "--", "train.py")
    assert said.code == 0, said.err
    assert "steps compared" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["torchtriage-runs", "train.py"]
    (run,) = (tmp_path / "torchtriage-runs").iterdir()
    assert sorted(path.name for path in run.iterdir()) == ["case.json", "report.html"]


def test_the_page_of_the_fault_keeps_its_word(
    call: Callable[..., Any], tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(snippet("Bad"))

    def runner(words: tuple[str, ...], folder: Path, *_: Any) -> Runner:
        made = Halved(server, Path(words[0]).absolute(), folder)
        made.command = words
        return made

    monkeypatch.setattr(pairs, "Runner", runner)
    said = call("repro", "--json", "--out", "out", "--", "train.py")
    told = json.loads(said.out)
    assert said.code == 1
    assert [finding["fault"] for finding in told["findings"]] == ["run-not-reproducible"]
    (item,) = told["findings"][0]["evidence"]
    assert (item["place"]["step"], item["place"]["rank"]) == (1, 0)
    assert "equal with clocks, os.urandom" in item["fact"]
    assert told["measurements"]["repro"]["place"]["phase"] == "setup"


@pytest.mark.parametrize(
    ("source", "code", "why"),
    [
        ("print('no training here')", 3, "no step of a training was seen"),
        ("raise SystemExit('the data are gone')", 3, "it ended with 1: the data are gone"),
    ],
)
def test_a_job_without_a_step_is_not_called_repeatable(
    source: str, code: int, why: str, call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(source)
    said = call("repro", "--json", "--", "train.py")
    assert said.code == code
    assert why in json.loads(said.out)["inconclusive"][0]["why"]
