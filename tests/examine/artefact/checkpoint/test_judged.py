"""What a resume would lack, what cannot be loaded by default, and what two files call differently."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from stored.genuine import GENUINE
from torch import nn

import torchtriage
from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.examine.artefact.checkpoint.names import is_data


def slugs(case: Case) -> set[str]:
    return {found.fault.slug for found in case.findings}


def saved(path: Path, state: Any) -> Path:
    torch.save(state, path)
    return path


def trained(steps: int = 3, schedule: bool = False) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    if schedule:
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(steps):
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()
    return model, optimizer


# Completeness


def test_a_scheduler_that_was_attached_and_cannot_be_wound_on_is_missing(tmp_path: Path) -> None:
    model, optimizer = trained(schedule=True)
    state: dict[str, Any] = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    (found,) = triage.read([saved(tmp_path / "a.pt", state)]).findings
    assert found.fault.slug == "checkpoint-incomplete"
    assert "initial_lr stands in its groups" in found.evidence[0].fact
    assert slugs(triage.read([saved(tmp_path / "b.pt", {**state, "epoch": 3})])) == set()


def test_an_optimizer_without_state_after_epochs_of_training_was_not_the_one_that_trained(tmp_path: Path) -> None:
    model, optimizer = trained(steps=0)
    state: dict[str, Any] = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    assert slugs(triage.read([saved(tmp_path / "a.pt", {**state, "epoch": 3})])) == {"checkpoint-incomplete"}
    assert slugs(triage.read([saved(tmp_path / "b.pt", {**state, "epoch": 0})])) == set()


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth"])
def test_of_what_the_trainer_always_writes_a_missing_part_is_named(name: str, tmp_path: Path) -> None:
    folder = trainer(tmp_path)
    assert slugs(triage.read([folder])) == set()
    (folder / name).unlink()
    (found,) = triage.read([folder]).findings
    assert found.fault.slug == "checkpoint-incomplete"
    assert {"optimizer.pt": "optimizer", "scheduler.pt": "scheduler", "rng_state.pth": "generator"}[
        name
    ] in found.evidence[0].fact


def test_a_trainer_that_saves_only_the_model_has_no_incomplete_checkpoint(tmp_path: Path) -> None:
    folder = trainer(tmp_path)
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        (folder / name).unlink()
    assert slugs(triage.read([folder])) == set()


def trainer(tmp_path: Path) -> Path:
    """The files of a checkpoint of transformers' Trainer."""
    folder = tmp_path / "checkpoint-3"
    folder.mkdir()
    model, optimizer = trained()
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    torch.save(optimizer.state_dict(), folder / "optimizer.pt")
    torch.save(scheduler.state_dict(), folder / "scheduler.pt")
    torch.save({"cpu": torch.get_rng_state()}, folder / "rng_state.pth")
    torch.save(argparse.Namespace(lr=0.1), folder / "training_args.bin")
    (folder / "config.json").write_text("{}")
    (folder / "trainer_state.json").write_text(json.dumps({"epoch": 1.0, "global_step": 3, "log_history": []}))
    return folder


def test_steps_that_the_optimizer_cannot_have_made_are_told(tmp_path: Path) -> None:
    model, optimizer = trained(steps=9)
    path = saved(
        tmp_path / "a.pt", {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "global_step": 4}
    )
    case = triage.read([path])
    assert slugs(case) == set()
    assert any("the optimizer has made 9 steps, and the file says step 4" in item.why for item in case.inconclusive)


# Objects


@pytest.mark.parametrize(
    ("state", "named"),
    [
        pytest.param(lambda: {"w": torch.ones(2), "args": argparse.Namespace(a=1)}, "argparse.Namespace", id="options"),
        pytest.param(lambda: trained()[0], "torch.nn.modules.container.Sequential", id="a whole model"),
        pytest.param(
            lambda: {"net.w": torch.ones(2), "opt": trained()[1]}, "torch.optim.adam.Adam", id="a whole optimizer"
        ),
    ],
)
def test_objects_that_the_safe_default_refuses_are_named(state: Any, named: str, tmp_path: Path) -> None:
    (found,) = triage.read([saved(tmp_path / "model.pt", state())]).findings
    assert found.fault.slug == "whole-object-saved"
    assert named in found.evidence[0].fact


def test_what_the_safe_default_loads_is_never_said_to_be_refused(tmp_path: Path) -> None:
    path = GENUINE["full"](tmp_path)
    assert slugs(triage.read([path])) == set()
    weights = saved(
        tmp_path / "w.pt",
        {"w": nn.Parameter(torch.ones(2)), "s": torch.Size([1, 2]), "d": torch.device("cpu"), "t": torch.float32},
    )
    torch.load(weights, weights_only=True)
    assert slugs(triage.read([weights])) == set()


def test_every_name_that_the_safe_default_allows_is_data() -> None:
    from torch._weights_only_unpickler import _get_allowed_globals, _get_user_allowed_globals

    spread = [name for name in _get_user_allowed_globals() if name.startswith("torch.distributed.")]
    names = [*_get_allowed_globals(), *spread]
    assert len(names) > 100
    assert [name for name in names if not is_data(name)] == []


def test_a_file_of_options_is_not_judged_and_said_to_need_its_class(tmp_path: Path) -> None:
    case = triage.read([saved(tmp_path / "training_args.bin", argparse.Namespace(lr=0.1))])
    assert slugs(case) == set()
    assert any(
        "a pickled argparse.Namespace: loading it runs the code of that class" in item.why for item in case.inconclusive
    )


# Differences


def told(a: Path, b: Path) -> tuple[Case, dict[str, Any]]:
    case = triage.read([a, b])
    return case, case.measurements["checkpoint"]["differences"]


def both(tmp_path: Path, one: Any, other: Any) -> tuple[Case, dict[str, Any]]:
    return told(saved(tmp_path / "a.pt", one), saved(tmp_path / "b.pt", other))


@pytest.mark.parametrize(
    ("prefix", "is_fault"),
    [("module.", True), ("_orig_mod.", True), ("_orig_mod.module.", True), ("model.backbone.", False)],
)
def test_a_prefix_is_told_with_the_mapping_and_a_wrappers_is_a_fault(
    prefix: str, is_fault: bool, tmp_path: Path
) -> None:
    state = trained()[0].state_dict()
    case, said = both(tmp_path, {f"{prefix}{key}": each for key, each in state.items()}, state)
    assert slugs(case) == ({"keys-mismatched"} if is_fault else set())
    assert said["renamed"] == {f"{prefix}{key}": key for key in state}
    assert said["rules"] == [{"a": prefix, "b": "", "keys": 4}]


def test_a_renamed_layer_is_told(tmp_path: Path) -> None:
    keys = [
        f"blocks.{number}.{name}.{kind}"
        for number in range(3)
        for name in ("fc1", "norm")
        for kind in ("weight", "bias")
    ]
    state = {key: torch.zeros(4) for key in keys}
    other = {key.replace("fc1", "linear_in"): each for key, each in state.items()}
    _, said = both(tmp_path, state, other)
    assert said["rules"] == [{"a": "fc1", "b": "linear_in", "keys": 6}]
    assert (said["same"], said["only_a"], said["only_b"]) == (6, [], [])
    assert said["renamed"]["blocks.2.fc1.bias"] == "blocks.2.linear_in.bias"


def test_layers_that_were_renamed_altogether_are_matched_by_order_and_shape(tmp_path: Path) -> None:
    state = {"conv1.weight": torch.zeros(3, 1), "conv1.bias": torch.zeros(3), "head.weight": torch.zeros(2, 3)}
    other = {
        "features.0.weight": torch.zeros(3, 1),
        "features.0.bias": torch.zeros(3),
        "out.fc.weight": torch.zeros(2, 3),
    }
    _, said = both(tmp_path, state, other)
    assert said["renamed"] == {
        "conv1.weight": "features.0.weight",
        "conv1.bias": "features.0.bias",
        "head.weight": "out.fc.weight",
    }


def test_nesting_is_told_and_is_no_fault(tmp_path: Path) -> None:
    model, optimizer = trained()
    whole = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}
    case, said = both(tmp_path, whole, model.state_dict())
    assert slugs(case) == set()
    assert (said["nested"], said["same"], said["renamed"]) == (["model", "/"], 4, {})
    assert said["parts"][0].startswith("the optimizer's state: only in ")


def test_a_head_of_another_size_and_keys_of_one_side_alone_are_told(tmp_path: Path) -> None:
    state = {"body.weight": torch.zeros(4, 4), "head.weight": torch.zeros(10, 4), "old.bias": torch.zeros(7)}
    other = {"body.weight": torch.zeros(4, 4), "head.weight": torch.zeros(5, 4), "new.scale": torch.zeros(3)}
    case, said = both(tmp_path, state, other)
    assert slugs(case) == set()
    assert said["resized"] == {"head.weight": [[10, 4], [5, 4]]}
    assert (said["only_a"], said["only_b"]) == (["old.bias"], ["new.scale"])


def test_an_actor_and_a_critic_of_the_same_sizes_are_no_fault(tmp_path: Path) -> None:
    actor = {"actor.0.weight": torch.zeros(4, 3), "actor.0.bias": torch.zeros(4)}
    case, said = both(tmp_path, actor, {key.replace("actor", "critic"): each for key, each in actor.items()})
    assert slugs(case) == set()
    assert said["rules"] == [{"a": "actor.", "b": "critic.", "keys": 2}]


def test_two_models_that_have_nothing_to_do_with_each_other_are_no_fault(tmp_path: Path) -> None:
    case, said = both(
        tmp_path, nn.Linear(3, 2).state_dict(), nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).state_dict()
    )
    assert slugs(case) == set()
    assert said["renamed"] == {}


# What is read


class Counting(io.FileIO):
    """A file that counts the bytes that are taken from it."""

    taken = 0

    def readinto(self, into: Any) -> int:
        count = super().readinto(into) or 0
        Counting.taken += count
        return count

    def read(self, size: int = -1) -> bytes:
        data = super().read(size) or b""
        Counting.taken += len(data)
        return data

    def readall(self) -> bytes:
        data = super().readall()
        Counting.taken += len(data)
        return data


def test_of_a_large_file_its_pickle_and_directory_and_little_more_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "model.pt", {f"layer{number}.weight": torch.zeros(2**18) for number in range(32)})
    torchtriage.read([path])  # what is imported and compiled, is
    opens = io.open

    def counted(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **given: Any) -> Any:
        if str(file) != str(path):
            return opens(file, mode, buffering, *args, **given)
        raw = Counting(file)
        return raw if buffering == 0 else io.BufferedReader(raw)

    monkeypatch.setattr(io, "open", counted)
    case = torchtriage.read([path])
    (figures,) = case.measurements["checkpoint"]["checkpoints"]
    assert figures["tensors"] == 32
    assert 0 < Counting.taken < 64_000
    assert figures["bytes"] > 32 * 2**20


def test_torch_and_numpy_are_not_needed_to_read(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = GENUINE["full"](tmp_path)
    code = f"import sys, torchtriage; torchtriage.read([{str(path)!r}]); print([n for n in ('torch', 'numpy', 'rich', 'pickletools') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
