"""What a run tells of two ranks that train together on devices, held against the ledgers of both devices."""

from __future__ import annotations

import re
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
from judged import Judged
from trainings import ranked

import torchtriage
from torchtriage.examine.run.job.events import Device
from torchtriage.examine.run.measures.figures import measurements
from torchtriage.examine.run.reader.load import read
from torchtriage.simulation import Ledger, Simulator

FILE = Path(__file__).parent / "trainings" / "ranked.py"
CLOSE = 0.05
WARM = 4  # steps at the start
OURS, PASSING_ON = str(Path(torchtriage.__file__).parent), "watch/patching.py"


S = ranked.S
Spans = list[tuple[int, int]]


def union(spans: Spans) -> Spans:
    found: Spans = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def length(spans: Spans) -> int:
    return sum(end - begin for begin, end in union(spans))


def exposed(ledger: Ledger, step: int) -> float:
    """Seconds for which a collective of the step was under way, its rank had come to it, and no kernel ran."""
    kernels = [(each.start, each.end) for each in ledger.kernels if abs(each.step - step) < 2]
    collectives = [(each.ready, each.end) for each in ledger.collectives if each.step == step]
    return (length(kernels + collectives) - length(kernels)) / S


class Watched(Judged):
    """A job that has run: what is made of the records of its ranks, and what their devices did."""

    def __init__(self, folder: Path) -> None:
        self.record = read(folder)
        super().__init__(self.record)
        self.ledgers = [Ledger.load(folder / f"ledger-{rank}.json") for rank in range(2)]

    @cached_property
    def steps(self) -> list[int]:
        """Those that both devices have timed."""
        timed = [{each.at for each in rank.all(Device)} for rank in self.record.ranks]
        return sorted(step for step in timed[0] & timed[1] if step > WARM)

    def exposed(self, rank: int) -> list[float]:
        return [exposed(self.ledgers[rank], step) for step in self.steps]

    def waited(self, rank: int) -> list[float]:
        by_step = {each.at: each.communication for each in self.record.ranks[rank].all(Device)}
        return [by_step[step] for step in self.steps]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    found = tmp_path_factory.mktemp("ranked")
    for name in (*ranked.JOBS, "buckets alone"):
        (found / name).mkdir()
    ranks = [
        subprocess.Popen([python, str(FILE), str(rank), str(found)], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=1200)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    return found


_watched: dict[str, Watched] = {}


def watched(folder: Path, name: str) -> Watched:
    if name not in _watched:
        _watched[name] = Watched(folder / name)
    return _watched[name]


LATE = [name for name, job in ranked.JOBS.items() if job.rank is not None]
EXPOSED = [name for name, job in ranked.JOBS.items() if "communication-bound" in job.faults]


@pytest.mark.parametrize("name", ranked.JOBS)
def test_what_is_wrong_with_a_job_of_two_ranks_is_found_and_nothing_else(
    simulator: Simulator, folder: Path, name: str
) -> None:
    job, seen = ranked.JOBS[name], watched(folder, name)
    assert (seen.faults, seen.verdicts) == (set(job.faults), set(job.verdicts))


@pytest.mark.parametrize("name", LATE)
def test_the_rank_that_is_waited_for_is_named_with_what_is_slow_and_by_how_much(
    simulator: Simulator, folder: Path, name: str
) -> None:
    job, seen = ranked.JOBS[name], watched(folder, name)
    (told,) = seen.evidence("run/straggler")
    assert told.place.rank == job.rank
    assert job.limit in told.fact
    apart = [other - own for own, other in zip(seen.exposed(job.rank), seen.exposed(1 - job.rank), strict=True)]
    (milliseconds,) = re.findall(r"comes (\S+) ms", told.fact)
    assert float(milliseconds) == pytest.approx(1e3 * sum(apart) / len(apart), rel=CLOSE)


@pytest.mark.parametrize("name", EXPOSED)
def test_the_share_that_nothing_hides_is_that_of_the_ledger(simulator: Simulator, folder: Path, name: str) -> None:
    seen = watched(folder, name)
    (told,) = seen.evidence("run/communication")
    least = [min(waits) for waits in zip(seen.exposed(0), seen.exposed(1), strict=True)]
    ends = [max(each.end for each in seen.ledgers[0].kernels if each.step == step) for step in (WARM, seen.steps[-1])]
    whole = (ends[1] - ends[0]) / S / (seen.steps[-1] - WARM) * len(seen.steps)
    assert told.value == pytest.approx(sum(least) / whole, rel=CLOSE)


@pytest.mark.parametrize("name", [*LATE, *EXPOSED])
@pytest.mark.parametrize("rank", [0, 1])
def test_what_a_device_waited_is_what_its_ledger_says(simulator: Simulator, folder: Path, name: str, rank: int) -> None:
    """Where it waits at all: after the waits of a backward pass the averages are copied, which is counted with them."""
    seen = watched(folder, name)
    copies = 4 * ranked.LAYERS * S // 500 / S
    for told, truth in zip(seen.waited(rank), seen.exposed(rank), strict=True):
        assert told == pytest.approx(truth, rel=CLOSE, abs=copies)


def test_collectives_that_are_waited_for_by_hand_are_told_with_the_line(simulator: Simulator, folder: Path) -> None:
    (told,) = watched(folder, "many collectives").evidence("run/communication")
    lines = FILE.read_text().splitlines()
    assert lines[told.place.line - 1].endswith("# waits here")
    assert f"all_reduce waits {2 * ranked.LAYERS}.0 times a step for 0.531 KiB apiece" in told.fact


def test_ranks_on_one_device_are_told_with_the_line_that_wraps_the_model(simulator: Simulator, folder: Path) -> None:
    (told,) = watched(folder, "one device").evidence("run/launch-environment")
    assert "ranks 0 and 1 both have their model on sim:0" in told.fact
    assert "DistributedDataParallel(" in FILE.read_text().splitlines()[told.place.line - 1]


@pytest.mark.parametrize("name", ranked.JOBS)
def test_what_is_called_busy_is_no_waiting_for_a_collective(simulator: Simulator, folder: Path, name: str) -> None:
    seen = watched(folder, name)
    for rank, ledger in zip(seen.record.ranks, seen.ledgers, strict=True):
        kernels = sum(each.end - each.start for each in ledger.kernels) / S
        assert sum(each.busy for each in rank.all(Device)) <= kernels


def test_what_a_collective_hides_behind_is_computing(simulator: Simulator, folder: Path) -> None:
    """Of eight averages of a step those but the last are hidden."""
    seen = watched(folder, "tiny buckets")
    under_way = sum(each.end - each.ready for each in seen.ledgers[0].collectives if each.step in seen.steps) / S
    assert sum(seen.waited(0)) < under_way / 4
    assert all(told.value > 0.95 for told in seen.evidence("run/compute-share"))


def test_the_ranks_stand_side_by_side_with_what_each_waited(simulator: Simulator, folder: Path) -> None:
    told: dict[str, Any] = measurements(watched(folder, "slow kernels").record)["ranks"]
    late = [each["late"] for each in told["each"]]
    assert late[1] > 2 > late[0]
    assert [each["seconds"]["communication"] > 1 for each in told["each"]] == [True, False]


@pytest.mark.parametrize("name", ranked.JOBS)
def test_no_probe_waits_for_a_device_after_the_first_steps(simulator: Simulator, folder: Path, name: str) -> None:
    for ledger in watched(folder, name).ledgers:
        ours = [each for each in ledger.synchronisations if each.file.startswith(OURS) and each.step >= 2]
        assert [(each.file, each.line) for each in ours if not each.file.endswith(PASSING_ON)] == []


@pytest.mark.parametrize("rank", [0, 1])
def test_watched_ranks_train_to_the_same_bits(simulator: Simulator, folder: Path, rank: int) -> None:
    alone, seen = (torch.load(folder / name / f"weights-{rank}.pt") for name in ("buckets alone", "buckets"))
    assert all(torch.equal(one, other) for one, other in zip(alone, seen, strict=True))
