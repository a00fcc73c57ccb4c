"""Traces that torch.profiler has recorded here, of jobs whose cause is known."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.examine.artefact import trace

HEAD = """
import os, sys, torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader

torch.set_num_threads(1)

def busy(milliseconds):
    sum(range(40_000 * milliseconds))  # about so long: work, not time, so that a busy machine changes little

def recorded(step, batches, path, **options):
    plan = schedule(wait=1, warmup=1, active=6, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, acc_events=True, **options) as prof:
        for batch in batches:
            step(batch)
            prof.step()
    prof.export_chrome_trace(path)
"""
INPUT = """
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 36

    def __getitem__(self, index):
        busy(10)
        return torch.ones(8)

model = nn.Linear(8, 8)
recorded(lambda batch: model(batch).sum().backward(), DataLoader(Slow(), batch_size=4), sys.argv[1], with_stack=True)
"""
COMPUTE = """
model = nn.Linear(700, 700)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def step(batch):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()

recorded(step, [torch.ones(1500, 700)] * 9, sys.argv[1], record_shapes=True)
"""
RANKS = """
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=int(sys.argv[3]), world_size=2)
model = nn.parallel.DistributedDataParallel(nn.Linear(64, 64))
late = dist.get_rank() == 1

def step(batch):
    busy(120 if late else 10)
    model(batch).sum().backward()

recorded(step, [torch.ones(8, 64)] * 9, sys.argv[1])
dist.destroy_process_group()
"""


def record(folder: Path, body: str, *further: tuple[str, ...]) -> None:
    """Runs BODY once for each of FURTHER arguments, all at the same time."""
    (folder / "train.py").write_text(HEAD + body)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, str(folder / "train.py"), *arguments], env=environment, stderr=subprocess.PIPE
        )
        for arguments in further
    ]
    for process in started:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()[-2000:]


def said(case: Case) -> tuple[set[str], set[str]]:
    return {finding.fault.slug for finding in case.findings}, {verdict.verdict for verdict in case.verdicts}


def test_a_job_that_waits_for_its_data(tmp_path: Path) -> None:
    record(tmp_path, INPUT, (str(tmp_path / "trace.json"),))
    case = triage.read([tmp_path / "trace.json"])
    assert said(case) == ({"input-bound"}, {"input-bound"})
    (finding,) = case.findings
    assert finding.evidence[0].value == pytest.approx(0.9, abs=0.1)  # 0.97 by itself, 0.88 beside other work
    assert not [item for item in case.inconclusive if "clocks" in item.why]  # one rank has nobody to be aligned with


def test_a_job_that_computes(tmp_path: Path) -> None:
    record(tmp_path, COMPUTE, (str(tmp_path / "trace.json.gz"),))
    assert said(triage.read([tmp_path / "trace.json.gz"])) == (set(), {"compute-bound"})
    told = trace.summary(str(tmp_path / "trace.json.gz"))
    assert told.count == 6
    assert told.odd == {}
    assert told.broken is None
    assert {row.name for row in told.operators[:3]} & {"aten::mm", "aten::addmm"}


def test_a_rank_that_comes_late(tmp_path: Path) -> None:
    meeting = str(tmp_path / "meeting")
    record(tmp_path, RANKS, *((str(tmp_path / f"rank{rank}.json"), meeting, str(rank)) for rank in (0, 1)))
    paths = sorted(tmp_path.glob("*.json"))
    (finding,) = [each for each in triage.read(paths).findings if each.fault.slug == "straggler"]
    (item,) = finding.evidence
    assert item.place.rank == 1
    assert item.value is not None
    assert item.value > 0.5
    assert "code of the host" in item.fact
    told = trace.read([str(path) for path in paths])
    assert told.numbers == (0, 1)
    assert [len(each.met) for each in told.ranks] == [6, 6]
