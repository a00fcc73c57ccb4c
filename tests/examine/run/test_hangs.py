"""A job of two ranks that stands still, as its launcher sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.examine.run.launcher.launch import Launch

JOB = """
import sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for step in range(12):
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()  # of the ranks one may have begun much later
if dist.get_rank() == 1:
    print("stands", flush=True)
    time.sleep(600)
dist.barrier()
"""
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def hangs(folder: Path) -> dict[int, list[dict[str, Any]]]:
    read = {rank: (folder / f"rank{rank}.jsonl").read_text().splitlines() for rank in (0, 1)}
    events = {rank: [json.loads(line) for line in lines] for rank, lines in read.items()}
    return {rank: [each for each in several if each["kind"] == "hang"] for rank, several in events.items()}


def job(folder: Path) -> Path:
    script = folder / "job.py"
    script.write_text(JOB)
    return script


def test_a_job_that_stands_still_is_judged_at_once_and_ended_where_that_is_wanted(
    tmp_path: Path, capfd: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    told: list[Case] = []
    wanted = Launch((*TORCHRUN, str(job(tmp_path))), tmp_path / "run", hang_after=1.0, end_hang=True)
    case, ended = triage.run(wanted, stands=told.append)

    assert ended.code
    assert [each.fault.slug for each in told[0].findings] == ["collective-on-some-ranks"]
    (finding,) = case.findings
    places = [(each.place.line, each.place.rank) for each in finding.evidence]
    sleeps, waits = (JOB.count("\n", 0, JOB.rindex(call)) + 1 for call in ("time.sleep", "dist.barrier"))
    assert places == [(sleeps, 1), (waits, 0)]
    assert any("--end-hang ended the job" in each.why for each in case.inconclusive)
    # on a busy machine a rank may stand for a second before, too
    assert [{each["why"] for each in several} for several in hangs(tmp_path / "run").values()] == [{"hang-after"}] * 2


def test_before_a_signal_ends_the_job_the_ranks_say_where_they_stand(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "torchtriage", "run", "--out", "run", "--", *TORCHRUN, str(job(tmp_path)))
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "stands\n"
        running.send_signal(signal.SIGTERM)
        running.stdout.read()

    assert running.returncode
    found = hangs(tmp_path / "run")
    assert [[each["why"] for each in several] for several in found.values()] == [["signal"]] * 2
    assert found[0][0]["call"] == {"op": "barrier"}
    assert found[1][0]["stack"][0][2] == "<module>"
