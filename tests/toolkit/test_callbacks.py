"""The callbacks of Lightning and transformers: the probes without the launcher, around fit and train."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from forked import Server

from torchtriage.core.errors import TriageError

JOBS = Path(__file__).parent.parent / "frameworks" / "jobs"

FIT = """
import sys
sys.argv = ["job", {fault!r}]
import lightning
from torchtriage.toolkit.lightning import TriageCallback
callback = TriageCallback("kept", symptom="the loss becomes NaN", quiet=True)
before = lightning.Trainer
lightning.Trainer = lambda **options: before(callbacks=[callback], **options)
exec(compile(open({script!r}).read(), {script!r}, "exec"))
"""

TRAIN = """
import sys
sys.argv = ["job", {fault!r}]
from torchtriage.toolkit.transformers import TriageCallback
callback = TriageCallback("kept", symptom="the loss becomes NaN", quiet=True)
from transformers import Trainer
made = Trainer.__init__
def __init__(trainer, *given, **options):
    made(trainer, *given, callbacks=[callback], **options)
Trainer.__init__ = __init__
exec(compile(open({script!r}).read(), {script!r}, "exec"))
"""

SAID = """
case = callback.case
print(case.query.text, case.measurements["steps"], [each.fault.slug for each in case.findings], str(callback.folder).endswith("kept"))
"""
CALLBACKS = [
    ("lightning", FIT, "lightning_fit", "", "the loss becomes NaN 80 [] True\n"),
    ("lightning", FIT, "lightning_fit", "eval", "the loss becomes NaN 80 ['mode-left-in-eval'] True\n"),
    ("transformers", TRAIN, "transformers_train", "", "the loss becomes NaN 120 [] True\n"),
    ("transformers", TRAIN, "transformers_train", "eval", "the loss becomes NaN 120 ['mode-left-in-eval'] True\n"),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    there = [each for each in ("lightning", "transformers.trainer") if find_spec(each.partition(".")[0])]
    server = Server("torch", "torch._dynamo", *there, **offline(tmp_path_factory.mktemp("hub")))
    yield server
    server.close()


def offline(place: Path) -> dict[str, str]:
    return {"HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "hf")}


def ended(place: Path, source: str) -> subprocess.CompletedProcess[str]:
    """How a process of its own ends, from its start to the end of its interpreter."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **offline(place)}
    return subprocess.run(
        [sys.executable, "-c", source], cwd=place, env=environment, capture_output=True, text=True, timeout=280
    )


@pytest.mark.parametrize(
    ("framework", "around", "job", "fault", "said"),
    CALLBACKS,
    ids=[f"{case[2]} {case[3]}".strip() for case in CALLBACKS],
)
def test_a_training_is_watched_and_judged_at_its_end(
    framework: str, around: str, job: str, fault: str, said: str, *, python: Server, tmp_path: Path
) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed: pip install -e '.[test]'")
    done = python.run("-c", around.format(fault=fault, script=str(JOBS / f"{job}.py")) + SAID, place=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(said)
    assert {"case.json", "report.html", "rank0.jsonl"} <= {each.name for each in (tmp_path / "kept").iterdir()}


@pytest.mark.parametrize(
    ("framework", "around", "job"),
    [("lightning", FIT, "lightning_fit"), ("transformers", TRAIN, "transformers_train")],
)
def test_a_training_that_ends_with_an_error_is_judged_all_the_same(
    framework: str, around: str, job: str, python: Server, tmp_path: Path
) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed: pip install -e '.[test]'")
    fails = around.format(fault="", script=str(JOBS / f"{job}.py")).replace(
        "exec(", "import torch\nold, turns = torch.Tensor.backward, []\ndef backward(*given, **options):\n"
        "    turns.append(1)\n    assert len(turns) < 12\n    return old(*given, **options)\n"
        "torch.Tensor.backward = backward\nexec(", 1
    )  # fmt: skip
    at_its_end = framework == "transformers"  # it is judged when the interpreter ends
    done = ended(tmp_path, fails) if at_its_end else python.run("-c", fails, place=tmp_path)

    assert done.returncode == 1
    assert "AssertionError" in done.stderr
    assert "with AssertionError" in (tmp_path / "kept" / "case.json").read_text()


@pytest.mark.parametrize("module", ["lightning", "transformers"])
def test_nothing_is_imported_before_the_callback_is_asked_for(module: str) -> None:
    source = f"import sys, torchtriage.toolkit.{module}; print(sorted({{'torch', 'lightning', 'transformers'}} & set(sys.modules)))"

    assert ended(Path.cwd(), source).stdout == "[]\n"


class Framework:
    """What both look like from a callback."""

    Callback = TrainerCallback = type("Callback", (), {})


@pytest.mark.parametrize(("module", "package"), [("lightning", "pytorch_lightning"), ("transformers", "transformers")])
def test_one_class_for_each_framework_and_no_case_before_a_training(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home: Any = __import__(f"torchtriage.toolkit.{module}", fromlist=["x"])
    home._made.cache_clear()
    monkeypatch.setitem(sys.modules, package, Framework)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "lightning.pytorch", raising=False)
    try:
        callback = home.TriageCallback(quiet=True)
        assert home.TriageCallback is type(callback)
        assert type(pickle.loads(pickle.dumps(callback))) is type(callback)
        assert callback.folder is None
        with pytest.raises(TriageError, match="no training has begun"):
            _ = callback.case
        with pytest.raises(AttributeError, match="no attribute 'Other'"):
            _ = home.Other
    finally:
        home._made.cache_clear()
