"""torchtriage experiment, as it is called."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from torchtriage.interface.cli.experiment import Duration

TRAINING = """
import torch
torch.manual_seed(0)
inputs = torch.randn(512, 8)
labels = inputs[:, :4].argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
for step in range(200):
    rows = torch.randint(512, (32,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
    optimizer.step()
open("model.pt", "wb").write(b"trained")
"""


def test_a_rate_that_is_too_high_is_told_with_what_was_tried(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING.replace("RATE", "3.0"))
    (tmp_path / "model.pt").write_bytes(b"mine")
    said = call("experiment", "--recipe", "stability", "--steps", "32", "--out", "out", "--json", "--", "train.py")
    assert said.code == 1, said.err
    told = json.loads(said.out)
    finding = next(each for each in told["findings"] if each["fault"] == "learning-rate-too-high")
    item = next(each for each in finding["evidence"] if each["detector"] == "trial/learning-rate-too-high")
    assert (item["place"]["path"], item["place"]["line"]) == ("train.py", 7)
    assert "4 pairs that begin alike" in item["fact"]
    tried = told["measurements"]["experiment"]
    assert [each["changes"] for each in tried["arms"]][:2] == [{}, {"learning-rate": 0.1}]
    assert (tmp_path / "model.pt").read_bytes() == b"mine"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["case.json", "report.html"]


def test_a_change_by_name_is_told_with_its_interval(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING.replace("RATE", "0.001"))
    said = call("experiment", "--try", "learning-rate=10", "--try", "dropout", "--steps", "16", "--", "train.py")
    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    assert "learning rate x 10 the loss goes from" in words
    assert "95 % interval" in words
    assert "no dropout no result: its modules drop nothing out" in words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("lr=3", "there is no change 'lr': anomaly-detection, autocast, batch-from-memory"),
        ("dropout=no", "is no number"),
    ],
)
def test_a_change_that_is_not_known_is_refused_with_those_that_are(
    words: str, said: str, call: Callable[..., Any]
) -> None:
    refused = call("experiment", "--try", words, "--", "train.py")
    assert refused.code == 2
    assert said in refused.err


CLEARED = """
import torch
from torch import nn
torch.manual_seed(0)
inputs = torch.randn(4096, 16)
labels = inputs[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for start in range(0, 4096, 32):
    loss = nn.functional.cross_entropy(model(inputs[start : start + 32]), labels[start : start + 32])
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
"""


def test_a_remedy_that_helps_is_told_and_written_where_that_is_wanted(call: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(CLEARED)
    said = call("experiment", "--fix", "--apply", "--steps", "32", "--out", "out", "--json", "--", "train.py")
    assert said.code == 1, said.err
    (tried,) = json.loads(said.out)["measurements"]["remedies"]["tried"]
    assert (tried["fault"], tried["line"], tried["verdict"]) == ("zeroed-before-step", 12, "helps")
    assert any("the loss ends at" in fact for fact in tried["facts"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["case.json", "report.html"]
    assert "1 finding mended in 1 file" in said.err
    assert "-    optimizer.zero_grad()" in said.err
    assert script.read_text().index("optimizer.zero_grad()") < script.read_text().index("loss.backward()")


def test_nothing_is_written_unasked_and_what_could_not_be_tried_is_said(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(CLEARED)
    said = call("experiment", "--fix", "--budget", "3s", "--", "train.py")
    assert "not known: it was not tried: the budget was spent" in " ".join(said.out.split())
    assert (tmp_path / "train.py").read_text() == CLEARED


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--apply", "--", "train.py"), "--apply goes with --fix"),
        (("--fix", "--recipe", "speed", "--", "train.py"), "no --recipe and no --try"),
        (("--recipe", "speed", "--accelerator", "sim", "--", "train.py"), "a simulated device has none of a real one"),
        (("--card", "8MiB", "--", "train.py"), "--card needs --accelerator sim"),
        (("--fix", "--", "-m", "package"), "no word of the command is a Python file of the working folder"),
    ],
)
def test_what_cannot_be_tried_is_refused(words: tuple[str, ...], said: str, call: Callable[..., Any]) -> None:
    refused = call("experiment", *words)
    assert refused.code in (2, 3)
    assert said in " ".join(refused.err.split())


def test_the_files_of_a_program_are_the_script_and_what_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchtriage.triage.remedies import program

    monkeypatch.chdir(tmp_path)
    files = {
        "train.py": "import torch, json\nfrom parts.model import Net\nimport helper as h\n",
        "helper.py": "import train\n",
        "parts/__init__.py": "",
        "parts/model.py": "from . import layers\nfrom .layers import Layer\n",
        "parts/layers.py": "this is no Python",
        "other.py": "import torch",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sorted(map(str, program(("python", "train.py")))) == sorted(files.keys() - {"other.py"})


def test_of_a_job_without_a_device_no_memory_is_judged(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING.replace("RATE", "0.01"))
    said = call("experiment", "--recipe", "memory", "--", "train.py")
    assert said.code == 3
    assert "unseen Nothing usable was found: the job uses no device whose memory is counted" in " ".join(
        said.out.split()
    )
    assert "--accelerator sim" in said.out


def test_a_job_without_a_training_could_not_be_examined(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('no training here')")
    said = call("experiment", "--json", "--", "train.py")
    assert said.code == 3
    assert "no step of a training was seen" in {each["why"] for each in json.loads(said.out)["inconclusive"]}


@pytest.mark.parametrize(
    ("words", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0), (300.0, 300.0)]
)
def test_a_budget_is_a_time(words: object, seconds: float) -> None:
    assert Duration().convert(words, None, None) == seconds


@pytest.mark.parametrize("words", ["0", "soon", "5 days", "-3"])
def test_what_is_no_time_is_refused_with_the_way_to_write_one(words: str) -> None:
    with pytest.raises(click.BadParameter, match="write 90s, 5m or 2h"):
        Duration().convert(words, None, None)


@pytest.mark.parametrize(
    ("words", "name", "said"),
    [
        (("experiment", "--recipe", "stability"), "leg", "File exists"),
        (("experiment", "--try", "workers=2"), "leg1", "File exists"),
        (("repro",), "leg", "File exists"),
        (("repro",), "records", "there is a folder of this name already"),
    ],
)
def test_a_folder_that_is_there_already_is_left_and_refused(
    words: tuple[str, ...], name: str, said: str, call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAINING.replace("RATE", "0.01").replace("range(200)", "range(4)"))
    for folder in (name, "legacy"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "weights.bin").write_bytes(b"mine")
    refused = call(*words, "--out", ".", "--", "train.py")
    assert refused.code in (2, 3)
    assert said in refused.err
    for folder in (name, "legacy"):
        assert (tmp_path / folder / "weights.bin").read_bytes() == b"mine"


def test_killed_in_the_middle_nothing_goes_on_and_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING.replace("RATE", "0.01").replace("range(200)", "range(10**9)"))
    command = [sys.executable, "-m", "torchtriage", "experiment", "--out", "out", "--", sys.executable, "train.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("torchtriage: experiment:"), line
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert _is_soon(lambda: not (tmp_path / "out" / "leg").exists() and not _working_in(tmp_path))


def _is_soon(is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not is_so() and time.monotonic() < until:
        time.sleep(0.05)
    return is_so()


def _working_in(folder: Path) -> list[str]:
    """The processes whose working folder lies in FOLDER."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            place = str((entry / "cwd").readlink())
        except OSError:
            continue
        if place.startswith(str(folder)):
            found.append(entry.name)
    return found
