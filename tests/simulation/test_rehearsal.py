"""`torchtriage run --accelerator sim`: what the report says of a script for a GPU, line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
TRAINING = """
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
model.to(device)
data = torch.utils.data.TensorDataset(torch.randn(320, 256), torch.randint(8, (320,)))
losses = []
for inputs, targets in torch.utils.data.DataLoader(data, batch_size=32, pin_memory=True, num_workers=1):
    inputs = inputs.cuda(non_blocking=True)  # pinned
    targets = torch.tensor(targets.tolist()).to(device)  # pageable
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())  # waits
assert losses[-1] < losses[0]
"""


@dataclass(frozen=True)
class Rehearsed:
    """What a rehearsal printed, its exit code, and its case."""

    code: int
    out: str
    err: str
    case: dict[str, Any]
    folder: Path
    lines: list[str]

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = self.case["measurements"]["rehearsal"]
        return found

    def line_of(self, mark: str) -> int:
        """The number of the line of the script in which MARK stands."""
        return next(at for at, text in enumerate(self.lines, 1) if mark in text)


Rehearse = Callable[..., Rehearsed]


@pytest.fixture
def rehearse(library_cache: None, python: str, tmp_path: Path) -> Rehearse:
    from torchtriage.simulation import build

    if (lacking := build.obstacles()) and not build.is_built():
        pytest.skip(f"the simulated device cannot be compiled here, for lack of {', '.join(lacking)}")

    def run(source: str, *options: str, python: str = python, **environment: str) -> Rehearsed:
        (tmp_path / "train.py").write_text(source)
        words = ["run", "--accelerator", "sim", *options, "--out", "kept", "--", python, "train.py"]
        done = subprocess.run(
            [sys.executable, "-m", "torchtriage", *words],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        case = json.loads((tmp_path / "kept" / "case.json").read_text())
        return Rehearsed(done.returncode, done.stdout, done.stderr, case, tmp_path / "kept", source.splitlines())

    return run


def test_a_script_for_cuda_is_told_by_line_and_against_the_card(rehearse: Rehearse) -> None:
    found = rehearse(HEAD + TRAINING, "--card", "H100", python=sys.executable)
    assert found.code == 0, found.err
    told = found.told
    assert (told["simulated"], told["card"], told["memory"], told["fits"]) == (True, "H100", 80 * 10**9, True)
    waits = {(each["line"], each["call"]): each["times"] for each in told["waits"]}
    assert waits == {(found.line_of("# waits"), "item"): 1, (found.line_of("# pageable"), "copy_"): 1}
    copies = {(each["line"], each["kind"]): (each["pinned"], each["bytes"]) for each in told["copies"]}
    assert copies[found.line_of("# pinned"), "host-to-device"] == (True, 32 * 256 * 4)
    assert copies[found.line_of("# pageable"), "host-to-device"] == (False, 32 * 8)
    holders, weights = told["peak"]["holders"], 4 * (256 * 512 + 512 + 512 * 8 + 8)
    assert holders["parameters"] == pytest.approx(weights, rel=0.01)
    assert holders["optimizer_states"] == pytest.approx(2 * weights, rel=0.01)
    assert told["steps"] == 6
    assert 20 <= told["kernels"] <= 40
    assert 0 < told["device_seconds"] < 1e-3


def test_no_time_of_a_simulated_device_is_told_as_one(rehearse: Rehearse) -> None:
    found = rehearse(HEAD + TRAINING)
    measured = found.case["measurements"]
    assert not {"step_time", "shares", "timeline", "lines", "overhead", "memory"} & set(measured)
    assert "per step" not in found.err
    unseen = {each["detector"]: each["why"] for each in found.case["inconclusive"]}
    assert "simulated" in unseen["run/compute-share"]
    assert "simulated" in unseen["run/sync-wait"]
    assert found.told["device_seconds"] is None  # nothing is known of the card's rates
    page = (found.folder / "report.html").read_text()
    for said in (found.err, page):
        assert "Rehearsal on a simulated device (no particular card, 16 GiB)" in said
        assert "Simulated: it fits" in said


def test_a_tensor_that_was_left_on_the_host_is_found_with_its_line(rehearse: Rehearse) -> None:
    found = rehearse(HEAD + "weight = torch.ones(4, device=device)\nprint(weight @ torch.ones(4))  # mixed\n")
    assert found.code == 1
    end = found.case["measurements"]["end"]
    assert "at least two devices" in end["message"] or "is on cpu" in end["message"]
    assert "cuda:0" in end["message"]
    assert end["place"]["line"] == found.line_of("# mixed")


def test_where_the_card_is_too_small_the_line_is_named(rehearse: Rehearse) -> None:
    found = rehearse(HEAD + TRAINING.replace("512", "8192"), "--card", "40MiB")
    assert found.code == 1
    assert "CUDA out of memory" in found.err
    assert found.told["fits"] is False
    assert found.told["out_of_memory"]["line"] > found.line_of("pin_memory=True")
    assert "Simulated: it does not fit" in " ".join(found.err.split())


def test_gradients_that_are_zero_from_the_beginning_are_not_called_cleared(rehearse: Rehearse) -> None:
    """The entropy of one class is zero, and so are all gradients."""
    found = rehearse(HEAD + TRAINING.replace(", 8)", ", 1)").replace("randint(8,", "randint(1,").partition("assert")[0])
    assert not [each["fault"] for each in found.case["findings"] if each["fault"] == "zeroed-before-step"]
    assert found.told["fits"]


MISSING = {
    "a graph": ("torch.cuda.CUDAGraph()  # here", "torch.cuda.CUDAGraph", "CUDA graphs are not simulated"),
    "a package": ("import flash_attn  # here", "flash_attn", "cannot run on the simulated accelerator"),
    "a kernel": (
        "torch.sparse_coo_tensor([[0]], [1.0], (2,), device='cuda')  # here",
        "aten::",
        "it makes or takes sparse tensors, which are not simulated",
    ),
}


def test_what_the_watch_computes_is_not_counted(rehearse: Rehearse) -> None:
    """A loss has a function of the watch in its place, which looks at all answers: four MiB in each of five tensors are
    the job's own (inputs, targets, answers, and two in the backward pass).
    """
    code = """
model = nn.Conv2d(1, 1, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
inputs = torch.randn(16, 1, 256, 256, device="cuda")
targets = torch.randint(2, (16, 1, 256, 256), device="cuda").float()
for step in range(12):
    loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    found = rehearse(f"{HEAD}{code}")
    assert (found.code, found.told["copies"], found.told["waits"]) == (0, [], [])
    assert found.told["peak"]["bytes"] == pytest.approx(5 * 2**22, rel=0.01)


@pytest.mark.parametrize("name", MISSING)
def test_what_cannot_be_simulated_ends_the_run_with_a_sentence(name: str, rehearse: Rehearse) -> None:
    code, asked, why = MISSING[name]
    found = rehearse(f"{HEAD}{code}\n")
    assert found.code == 1
    (absent,) = found.told["absent"]
    assert asked in absent["name"]
    assert why in absent["why"]
    assert absent["line"] == found.line_of("# here")
    assert "Simulated: it ends for lack of" in " ".join(found.err.split())


def test_a_device_by_argument_or_from_torch_is_the_same_one(rehearse: Rehearse) -> None:
    code = "import torch\na = torch.ones(2, device='sim')\nb = torch.ones(2, device=torch.accelerator.current_accelerator())\n"
    found = rehearse(f"{code}print((a + b + torch.ones(2).cuda()).device)\n")
    assert found.out == "cuda:0\n"


def test_a_device_that_cannot_be_compiled_is_told_before_the_script_begins(rehearse: Rehearse, tmp_path: Path) -> None:
    found = rehearse("import torch\nprint('began')\n", XDG_CACHE_HOME=str(tmp_path / "empty"), CXX="no-such-compiler")
    assert found.code == 1
    assert found.out == ""
    assert "is compiled for torch" in found.err
    assert "this machine lacks a C++ compiler (no-such-compiler is not on PATH)" in found.err
