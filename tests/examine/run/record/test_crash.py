"""Jobs that end badly: the error, exit or signal is the first thing that is said, with the user's own line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchtriage.core.case import Case
from torchtriage.examine.run.reader.endings import crashes
from torchtriage.examine.run.record import Log
from torchtriage.report.outline import outline
from torchtriage.triage import judge

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(17, 2)

    def forward(self, x):
        x = self.body(x)
        return self.head(x)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
AT_FIRST = MODEL + "model(torch.randn(4, 8)).sum().backward()\n"
LATER = """
import math, torch
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(5):
    loss = (weight * torch.randn(3)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 3:
        CHECK
"""
WITHOUT_TORCH = "import json\njson.load(open('config.json'))\n"


@pytest.fixture(scope="module")
def alone(run: Callable[..., Any]) -> Callable[[str], tuple[Any, Case]]:
    """Runs a source as a Python of its own under probes; what it left, and its case."""
    return lambda source: judged(run(source))


@pytest.fixture(scope="module")
def job(fork: Callable[[str], Any]) -> Callable[[str], tuple[Any, Case]]:
    """The same in a fork that has torch, for what does not depend on how a process begins."""
    return lambda source: judged(fork(source))


def judged(trial: Any) -> tuple[Any, Case]:
    """TRIAL with its case, for which the line is added that its launcher would have written."""
    signal = -trial.code if trial.code < 0 else None
    ended = {
        "kind": "ended",
        "pid": trial.events("attached", "processes.jsonl")[0]["pid"],
        "code": 128 + signal if signal else trial.code,
        "signal": f"SIG{signal}" if signal else None,
    }
    with (trial.folder / "processes.jsonl").open("a") as file:
        file.write(json.dumps(ended) + "\n")
    return trial, judge(trial.folder)


@pytest.fixture(scope="module")
def failed_at_first(alone: Callable[[str], tuple[Any, Case]]) -> tuple[Any, Case]:
    return alone(AT_FIRST)


def end(case: Case) -> dict[str, Any]:
    return case.measurements["end"]


def test_a_job_that_fails_in_its_first_forward_pass_is_told_with_shapes_and_module(failed_at_first) -> None:
    trial, case = failed_at_first
    assert (trial.code, [finding.fault.slug for finding in case.findings]) == (1, ["shape-mismatch"])
    (evidence,) = case.findings[0].evidence
    assert (evidence.place.module, evidence.place.anchor) == ("head", "return self.head(x)")
    assert "`self.head` is Linear(in_features=17, out_features=2, bias=True)" in evidence.fact
    assert "`x` is (4, 16) float32 on cpu" in evidence.fact
    assert (end(case)["type"], end(case)["code"], end(case)["cause"]) == ("RuntimeError", 1, "shape-mismatch")


def test_no_frame_of_ours_stands_in_the_users_traceback(failed_at_first) -> None:
    trial, _ = failed_at_first
    assert "Traceback (most recent call last)" in trial.stderr
    assert "torchtriage/examine" not in trial.stderr
    assert "torchtriage/specialists" not in trial.stderr
    assert trial.stderr.splitlines()[-1].startswith("RuntimeError: mat1 and mat2")


@pytest.mark.parametrize(
    ("check", "kind", "type_", "message"),
    [
        ("math.exp(1e9)", "exception", "OverflowError", "math range error"),
        ("{}['lr']", "exception", "KeyError", "'lr'"),
        ("raise SystemExit(3)", "exit", "", ""),
        ("__import__('sys').exit(3)", "exit", "", ""),
        ("__import__('sys').exit('Loss is nan')", "exit", "", "Loss is nan"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", "signal", "SIG9", ""),
    ],
)
def test_how_a_job_ended_is_said_with_the_step(check: str, kind: str, type_: str, message: str, job) -> None:
    trial, case = job(LATER.replace("CHECK", check))
    told = end(case)
    assert (told["kind"], told["type"], told["message"]) == (kind, type_, message)
    assert told["code"] == (137 if kind == "signal" else trial.code)
    assert told["place"]["step"] in (3, 4)
    assert told["is_trained"] is True
    if kind == "exception" or ".exit(" in check:
        assert told["place"]["line"] == 11
    assert outline(case).tone == "error"


def test_a_job_that_fails_before_torch_is_there_is_told_too(alone) -> None:
    _, case = alone(WITHOUT_TORCH)
    assert (end(case)["type"], end(case)["place"]["line"], end(case)["is_trained"]) == ("FileNotFoundError", 2, False)
    assert outline(case).verdict == (
        "A file is missing or unreadable (file-unreadable): train.py:2, before its first training "
        "step. FileNotFoundError: [Errno 2] No such file or directory: 'config.json'."
    )


def test_what_a_child_failed_at_is_no_end_of_a_job_that_went_on(job) -> None:
    child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import nowhere'], stderr=-3)\n"
    _, case = job(child + LATER.replace("CHECK", "pass"))
    assert "end" not in case.measurements
    _, case = job(child + LATER.replace("CHECK", "{}['lr']"))
    assert end(case)["type"] == "KeyError"


def test_an_error_that_the_job_handles_is_no_end(job) -> None:
    _, case = job(LATER.replace("CHECK", "try:\n            {}['lr']\n        except KeyError:\n            pass"))
    assert "end" not in case.measurements


def test_what_looks_like_a_secret_in_a_message_is_not_written_down(alone) -> None:
    for source in ("raise ValueError('hf_abcdefghijklmnop')", "import torch\nraise ValueError('hf_abcdefghijklmnop')"):
        trial, case = alone(source)
        assert "hf_abc" in trial.stderr
        assert "[redacted]" in end(case)["message"]
        assert not any("hf_abc" in path.read_text() for path in trial.folder.iterdir() if path.is_file())


def test_a_chain_of_errors_ends_with_the_one_that_was_raised_last(job) -> None:
    chain = "try:\n            {}['lr']\n        except KeyError as error:\n            raise ValueError('no rate') from error"
    _, case = job(LATER.replace("CHECK", chain))
    assert end(case)["type"] in {"ValueError", "KeyError"}
    assert outline(case).tone == "error"


WORKER = (
    MODEL.replace("nn.Linear(17, 2)", "nn.Linear(16, 2)")
    + """
class Animals(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.randn(8), {"otter": 0}["okapi"]

for x, y in torch.utils.data.DataLoader(Animals(), num_workers=WORKERS):
    model(x).sum().backward()
    optimizer.step()
"""
)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_worker_is_told_with_the_users_file_and_none_of_our_frames(workers: int, job) -> None:
    trial, case = job(WORKER.replace("WORKERS", str(workers)))
    assert "torchtriage/examine" not in trial.stderr
    assert "torchtriage/specialists" not in trial.stderr
    where = " (in DataLoader worker process 0)" if workers else ""
    assert outline(case).verdict == (
        f"The job ended with KeyError at train.py:23, before its first training step: 'okapi'{where}."
    )


def test_a_hook_of_the_users_own_gets_the_error_without_our_frames(tmp_path: Path, alone) -> None:
    hook = "import sys, traceback\nsys.excepthook = lambda *each: print('HOOK', traceback.format_exception(*each))\n"
    trial, _ = alone(hook + AT_FIRST)
    assert "HOOK" in trial.stdout
    assert "torchtriage/examine" not in trial.stdout


CHECKED = """
import math, sys
import torch

def stop(loss, best, scores, limit=float("inf")):
    if not math.isfinite(loss) or scores.isnan().any():
        print("stopping")
        sys.exit(4)

class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum()
stop(float("nan"), float("inf"), torch.tensor([1.0, float("inf")]))
"""


def test_what_an_exit_tested_is_looked_at_and_no_other_name(job) -> None:
    trial, _ = job(CHECKED)
    (row,) = [json.loads(line) for line in _processes(trial) if '"exit"' in line]
    assert row["not_finite"] == [["loss", "nan"], ["scores", "inf"]]


def _processes(trial: Any) -> list[str]:
    return (trial.folder / "processes.jsonl").read_text().splitlines()


CAUGHT = (
    MODEL.replace("nn.Linear(17, 2)", "nn.Linear(16, 2)")
    + """
import logging, os, sys, traceback

def train(last):
    for step in range(3):
        model(torch.randn(4, 8 if step < last else 9)).sum().backward()
        optimizer.step()

def logged():
    logging.error("no checkpoint was written")

def main(last):
    try:
        train(last)
    except RuntimeError as error:
        HANDLE
    return 2
AND_THEN
"""
)
LEAVE = "sys.exit(main(2))"


@pytest.mark.parametrize(
    ("handle", "then"),
    [
        ("sys.exit(2)", LEAVE),
        ("sys.exit('cannot train')", LEAVE),
        ("traceback.print_exc()", LEAVE),
        ("logging.exception('run aborted')", LEAVE),
        ("logging.error('run aborted', exc_info=True)", "raise SystemExit(main(2))"),
        ("logging.error('run aborted: %s', error)", LEAVE),
        ("logging.getLogger('run').critical(error)\n        raise SystemExit(1)", LEAVE),
        ("logging.error(error)", "os._exit(main(2))"),
        ("os._exit(1)", LEAVE),
    ],
)
def test_an_error_over_which_the_program_leaves_is_told_as_its_end(handle: str, then: str, job) -> None:
    trial, case = job(CAUGHT.replace("HANDLE", handle).replace("AND_THEN", then))
    assert trial.code in (1, 2)
    assert "torchtriage/examine" not in trial.stderr
    assert "torchtriage/specialists" not in trial.stderr
    assert outline(case).verdict.startswith("Sizes that do not fit meet in one operation (shape-mismatch): train.py:")
    assert end(case)["place"]["step"] == 2
    assert end(case)["code"] == trial.code


@pytest.mark.parametrize(
    ("handle", "then"),
    [
        ("traceback.print_exc()", "main(1); train(3); sys.exit(2)"),
        ("traceback.print_exc()", "main(2); sys.exit('no room for the results')"),
        ("pass", LEAVE),
        ("logging.warning(error)", LEAVE),
        ("logged()", LEAVE),
    ],
    ids=["trained on", "another reason", "in silence", "logged as a warning", "not an error of this handler"],
)
def test_an_error_that_the_program_survived_is_not_its_end(handle: str, then: str, job) -> None:
    _, case = job(CAUGHT.replace("HANDLE", handle).replace("AND_THEN", then))
    assert case.findings == ()
    assert end(case)["kind"] == "exit"


def test_an_error_that_was_printed_before_a_good_end_is_no_end(job) -> None:
    _, case = job(CAUGHT.replace("HANDLE", "traceback.print_exc()").replace("AND_THEN", "main(2)"))
    assert "end" not in case.measurements


def test_a_program_that_leaves_over_an_error_before_it_has_torch_is_told_too(alone) -> None:
    script = (
        "import json, sys\ntry:\n    json.loads('{')\nexcept ValueError as error:\n    sys.exit(f'config: {error}')\n"
    )
    _, case = alone(script)
    assert outline(case).verdict.startswith("A file is missing or unreadable (file-unreadable): train")


PLAIN = "import logging, pickle, sys, traceback\nimport torch\nfrom sys import exit as leave\n"
BESIDE_THE_END = {
    "the exit is pickled by its name": (
        "assert pickle.loads(pickle.dumps(sys.exit)) is sys.exit is leave\nassert leave.__module__ == 'sys'\n", 0, ""
    ),
    "a traceback is made from keywords": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n"
        "    made = traceback.TracebackException(exc_type=type(e), exc_value=e, exc_traceback=e.__traceback__)\n"
        "    assert 'line 5' in ''.join(made.format())\n", 0, ""
    ),
    "a class that is not called an error": (
        "class StopRun(Exception):\n    pass\nraise StopRun('no improvement')\n",
        1, "The job ended with StopRun at train.py:6, before its first training step: no improvement.",
    ),
    "words that cannot be made": (
        "class Mute(Exception):\n    def __str__(self):\n        raise TypeError\nraise Mute\n",
        1, "The job ended with Mute at train.py:7, before its first training step",
    ),
    "an exit within a handler further out": (
        "def train():\n    leave(3)\ntry:\n    open('last.pt')\nexcept OSError:\n    train()\n",
        3, "The job ended itself with exit code 3 at train.py:5, before its first training step.",
    ),
    "an error that was survived": (
        "try:\n    open('last.pt')\nexcept OSError:\n    logging.exception('from scratch')\nleave(3)\n",
        3, "The job ended itself with exit code 3 at train.py:8, before its first training step.",
    ),
    "an error after the exit": (
        "import atexit\n\ndef late():\n    try:\n        open('last.pt')\n    except OSError:\n"
        "        traceback.print_exc()\natexit.register(late)\nleave(3)\n",
        3, "The job ended itself with exit code 3 at train.py:12, before its first training step.",
    ),
    "many errors before the last one": (
        "for n in range(60):\n    try:\n        open(f'{n}.jpg')\n    except OSError:\n        traceback.print_exc()\n"
        "try:\n    torch.ones(2) + torch.ones(3)\nexcept RuntimeError:\n    leave(3)\n",
        3, "Sizes that do not fit meet in one operation (shape-mismatch): train.py:10, before its first training step.",
    ),
    "an error that cannot be changed": (
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Bad(Exception):\n    exceptions: str = 'shard'\n"
        "try:\n    raise Bad\nexcept Bad:\n    traceback.print_exc()\n    leave(3)\n",
        3, "The job ended with Bad at train.py:9, before its first training step",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE_THE_END)
def test_how_programs_leave_is_their_own_affair(name: str, job) -> None:
    script, code, said = BESIDE_THE_END[name]
    trial, case = job(PLAIN + script)
    assert trial.code == code, trial.stderr
    assert "torchtriage/examine" not in trial.stderr
    assert "torchtriage/specialists" not in trial.stderr
    assert outline(case).verdict.startswith(said)


THREADS = """
import queue, threading
import torch

def produce(found):
    found.put(torch.ones(3))
    torch.ones(2) + found.get()

def wait(found):
    found.get(timeout=0.01)

def fail():
    raise KeyError("labels")

found = queue.Queue()
thread = threading.Thread(target=produce, args=(found,))
thread.start()
thread.join()
"""


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("wait(found)", "Sizes that do not fit meet in one operation (shape-mismatch): train.py:7, before its first"),
        ("fail()", "The job ended with KeyError at train.py:13, before its first training step: 'labels'."),
    ],
)
def test_who_waits_in_vain_for_a_thread_fails_for_its_error(then: str, said: str, job) -> None:
    trial, case = job(THREADS + then)
    assert outline(case).verdict.startswith(said)
    assert "Exception in thread" in trial.stderr
    assert "torchtriage/examine" not in trial.stderr


def test_an_error_of_a_thread_that_nobody_waits_for_is_no_end(job) -> None:
    trial, case = job(THREADS)
    assert trial.code == 0
    assert "end" not in case.measurements


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("sys.exit(3)", ": loss is not usable."),
        ("logging.warning('bye'); os._exit(3)", ": loss is not usable."),
        ("optimizer.step(); sys.exit(3)", "."),
        ("sys.exit('no room')", ": no room."),
    ],
)
def test_what_was_logged_as_an_error_is_said_of_the_exit(then: str, said: str, job) -> None:
    source = MODEL.replace("nn.Linear(17, 2)", "nn.Linear(16, 2)") + "import logging, os, sys\n"
    source += "model(torch.randn(4, 8)).sum().backward()\noptimizer.step()\nlogging.error('loss is %s', 'not usable')\n"
    _, case = job(source + then)
    assert outline(case).verdict.endswith(said)
    assert outline(case).verdict.startswith("The job ended itself with exit code ")


def test_what_argparse_refused_is_said(job) -> None:
    parser = "import argparse, torch\np = argparse.ArgumentParser('t')\np.add_argument('--epochs', required=True)\n"
    trial, case = job(parser + "p.parse_args()\n")
    assert trial.code == 2
    assert outline(case).verdict == (
        "The job ended itself with exit code 2 at train.py:4, before its first training step: t: error: the following "
        "arguments are required: --epochs."
    )


def test_a_group_of_errors_ends_the_job_by_its_first_part(job) -> None:
    _, case = job("import torch\nraise ExceptionGroup('bad settings', [ValueError('no lr'), KeyError('steps')])\n")
    assert outline(case).verdict.startswith("The job ended with ValueError")
    assert "no lr" in outline(case).verdict


def test_the_error_that_a_rank_caught_is_the_reason_of_the_launchers() -> None:
    launcher = {"kind": "error", "pid": 1, "error": "ChildFailedError", "message": "", "time": 9}
    rank = {"kind": "handled", "pid": 2, "rank": 1, "error": "ValueError", "message": "no", "time": 5}
    ended = {"kind": "ended", "code": 1}
    assert [each.type for each in crashes((), Log((launcher, rank, ended)))] == ["ValueError", "ChildFailedError"]
    other = {**launcher, "error": "KeyError"}
    assert [each.type for each in crashes((), Log((other, rank, ended)))] == ["KeyError"]
    assert crashes((), Log((rank, {**ended, "code": 0}))) == ()


TWICE = """
import os, signal
import torch
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)

class Late(str):
    def __str__(self):
        os.kill(os.getpid(), signal.SIGINT)  # a second Ctrl-C, while the probes write their last words
        return ""

for step in range(3):
    (weight * 2).sum().backward()
    optimizer.step()
raise KeyboardInterrupt(Late())
"""


def test_a_second_interrupt_at_the_end_shows_no_frame_of_ours(alone) -> None:
    trial, _ = alone(TWICE)
    assert "torchtriage/examine" not in trial.stderr
    assert "Exception ignored" not in trial.stderr
