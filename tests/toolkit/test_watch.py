"""watch(): the probes around a block of this very process, which is afterwards as it was before."""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import torchtriage.toolkit.watching as home
from torchtriage import TriageError
from torchtriage.examine.run.job import Job
from torchtriage.toolkit import watch


@pytest.fixture(scope="module", autouse=True)
def objects_of_torch_itself_stand_aside() -> None:
    """Each watch looks through all objects for models: those of torch's compiler are most, and none of them is one.

    The last test begins a process in which they are all looked through.
    """
    importlib.import_module("torch._dynamo")  # the first optimizer would
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train(steps: int = 12, *, model: torch.nn.Module | None = None, zeroed: bool = True, stepped: bool = True) -> None:
    torch.manual_seed(0)
    model = model or torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    loader = torch.utils.data.DataLoader(torch.randn(steps * 4, 4), batch_size=4)
    for batch in loader:
        if zeroed:
            optimizer.zero_grad()
        model(batch).square().mean().backward()
        if stepped:
            optimizer.step()


def slugs(run: Any) -> set[str]:
    return {finding.fault.slug for finding in run.case.findings}


def kinds(folder: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (folder / "rank0.jsonl").read_text().splitlines()]


def test_a_block_is_watched_judged_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with watch("kept", symptom="the loss becomes NaN") as run:
        train(zeroed=False)

    assert slugs(run) == {"gradients-not-zeroed"}
    assert run.case.query is not None
    assert run.case.query.text == "the loss becomes NaN"
    assert run.case.measurements["steps"] == 12
    assert {"case.json", "report.html", "rank0.jsonl", ".gitignore"} <= {each.name for each in Path("kept").iterdir()}
    said = capsys.readouterr()
    assert said.out == ""
    assert "gradients-not-zeroed" in said.err
    assert "written: kept/case.json" in said.err.replace(str(Path.cwd()) + "/", "")


def test_a_quiet_watch_says_nothing_and_names_its_folder_by_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    with watch(quiet=True) as run:
        train()

    assert capsys.readouterr() == ("", "")
    assert run.folder is not None
    assert run.folder.parent == Path.cwd() / "torchtriage-runs"
    assert slugs(run) == set()


def attributes() -> Iterator[tuple[str, Any]]:
    """Everything in torch that can be called, by where it stands: modules' functions, classes' methods."""
    for name, module in sorted(sys.modules.items()):
        if not (name == "torch" or name.startswith("torch.")):
            continue
        for word, value in list(vars(module).items()):
            if issubclass(type(value), type) and value.__module__ == name:
                yield from ((f"{name}.{word}.{own}", each) for own, each in list(vars(value).items()) if callable(each))
            elif callable(value):
                yield f"{name}.{word}", value


def living(kind: type) -> list[Any]:
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is kind]


def test_afterwards_every_attribute_hook_and_descriptor_is_what_it_was() -> None:
    from torch.optim import optimizer as hooks

    with watch(quiet=True):
        train()  # what torch loads late is there from here on
    before, finders, path = dict(attributes()), list(sys.meta_path), list(sys.path)
    jobs, open_files = len(living(Job)), len(list(Path("/proc/self/fd").iterdir()))
    with watch(quiet=True):
        train()
        inside = dict(attributes())

    changed = {name for name in before if inside[name] is not before[name]}
    assert {"torch.autograd.backward", "torch.optim.optimizer.Optimizer.__init__"} <= changed
    assert {name for name, value in attributes() if name in before and value is not before[name]} == set()
    assert not hooks._global_optimizer_pre_hooks
    assert not hooks._global_optimizer_post_hooks
    assert (finders, path) == (sys.meta_path, sys.path)
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files
    del inside
    assert len(living(Job)) == jobs  # torch's compiler may remember one function that it met within the first watch


def test_a_second_watch_begins_anew() -> None:
    with watch("first", quiet=True) as first:
        train(zeroed=False)
    with watch("second", quiet=True) as second:
        train()
    with watch("third", quiet=True) as third:
        train(zeroed=False)

    assert [slugs(each) for each in (first, second, third)] == [
        {"gradients-not-zeroed"},
        set(),
        {"gradients-not-zeroed"},
    ]
    assert [each.case.measurements["steps"] for each in (first, second, third)] == [12, 12, 12]
    assert kinds(Path("first")) == kinds(Path("third"))


def test_a_watch_within_a_watch_is_refused_and_the_outer_one_goes_on() -> None:
    with watch(quiet=True) as run:
        with pytest.raises(TriageError, match="watched already"), watch("inner", quiet=True):
            raise AssertionError("must not begin")
        train()

    assert run.case.measurements["steps"] == 12
    assert not Path("inner").exists()


def test_an_error_passes_through_as_it_is_and_what_came_before_is_judged() -> None:
    error = ValueError("of the block's own")
    with pytest.raises(ValueError, match="of the block's own") as raised, watch(quiet=True) as run:  # noqa: PT012
        train(zeroed=False)
        raise error

    assert raised.value is error
    assert error.__context__ is None
    assert not getattr(error, "__notes__", None)
    assert slugs(run) == {"gradients-not-zeroed"}
    assert any("with ValueError at" in item.why for item in run.case.outcomes if hasattr(item, "why"))
    with watch(quiet=True):
        train()


def test_models_and_optimizers_that_were_there_before_are_seen() -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with watch(quiet=True) as run:
        for _ in range(12):
            model(torch.randn(4, 4)).square().mean().backward()

    assert optimizer.state_dict()["state"] == {}
    assert "step-missing" in slugs(run)
    (model_seen,) = run.case.measurements["setup"]["models"]
    assert model_seen["parameters"] == {"float32": 5}


def test_a_block_that_trains_nothing_is_inconclusive_not_healthy() -> None:
    with watch(quiet=True) as run:
        pass

    assert "no batch, forward pass, backward pass" in " ".join(getattr(item, "why", "") for item in run.case.outcomes)


def test_the_case_is_not_there_before_the_block_has_ended() -> None:
    with watch(quiet=True) as run, pytest.raises(TriageError, match="has not ended"):
        _ = run.case


def test_a_folder_that_holds_something_is_refused_and_nothing_is_placed() -> None:
    Path("kept").mkdir()
    Path("kept/precious").touch()
    for _ in range(2):
        with pytest.raises(TriageError, match="not empty"), watch("kept"):
            raise AssertionError("must not begin")
    assert torch.autograd.backward.__module__ == "torch.autograd"
    assert not hasattr(torch.autograd.backward, "__wrapped__")


def test_the_probes_leave_after_so_many_steps() -> None:
    with watch("kept", steps=5, quiet=True) as run:
        train()

    assert kinds(Path("kept")).count("step") == 5
    assert run.case.measurements["steps"] == 5


def test_numbers_are_the_same_in_a_block_as_without() -> None:
    plain, watched = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
    watched.load_state_dict(plain.state_dict())
    train(model=plain)
    with watch(quiet=True):
        train(model=watched)

    assert torch.equal(plain.weight, watched.weight)


def test_a_job_under_torchtriage_run_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, home.LAUNCHED, home)
    with watch("kept", quiet=True) as run:
        train()

    assert not Path("kept").exists()
    assert "watched by `torchtriage run` already" in str(run.case.outcomes)


@pytest.mark.parametrize("name", ["<ipython-input-3-0>", "/tmp/ipykernel_77/1234.py"])
def test_in_a_notebook_places_are_cells(name: str) -> None:
    code = """
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(12):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""
    with watch(quiet=True) as run:
        exec(compile(code, name, "exec"), {"torch": torch, "__name__": "__main__"})

    (found,) = run.case.findings
    assert (found.evidence[0].place.path, found.evidence[0].place.line) == ("cell", 5)


CELLS = """
import sys
assert not hasattr(sys.modules["__main__"], "__file__")
import torchtriage.toolkit
assert "torch" not in sys.modules
from torchtriage.examine.run.job import Job
from torchtriage.toolkit import watch
import torch
with watch(quiet=True) as run:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(12):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
print(run.case.measurements["steps"], [f.fault.slug for f in run.case.findings])
"""


def test_code_without_a_file_is_watched_and_the_toolkit_alone_loads_no_torch() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", CELLS], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "12 []\n"
