"""Several ranks save and load together: replicas once, shards by parts, and no step that not all of them have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from ranked import on_ranks
from safetensors import safe_open
from torch import nn
from trained import COUNT, EPOCHS

from torchtriage.toolkit import TrainingState

BOUNDARY, MIDWAY = (1, COUNT), (1, 4)


@pytest.mark.parametrize("save_at", [BOUNDARY, MIDWAY], ids=["boundary", "midway"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("augment", [False, True], ids=["plain", "augmented"])
def test_two_replicas_resume_bit_by_bit(tmp_path: Path, save_at: Any, workers: int, augment: bool) -> None:
    said = on_ranks("replicas", tmp_path, save_at=save_at, workers=workers, augment=augment)
    assert [{**each, "bits": 0} for each in said] == [
        {"same": True, "steps": EPOCHS * COUNT, "notes": [], "bits": 0}
    ] * 2
    assert said[0]["bits"] != said[1]["bits"]


def names(path: Path) -> set[str]:
    with safe_open(path, "pt") as file:
        return set(file.keys())


def test_what_all_ranks_have_alike_is_written_once(tmp_path: Path) -> None:
    on_ranks("replicas", tmp_path, save_at=MIDWAY)
    step = next((tmp_path / "stopped").glob("step-*"))
    assert {"model.state.0.weight", "optimizer.state.model.0.weight.exp_avg"} < names(step / "rank0.safetensors")
    others = names(step / "rank1.safetensors")
    assert not any(
        name.startswith(("model.", "optimizer."))
        for name in others - {"model.state.1.running_mean", "model.state.1.running_var"}
    )
    assert "state.random.torch" in others


@pytest.mark.parametrize("async_", [False, True])
def test_shards_are_written_by_parts_and_come_back_bit_by_bit(tmp_path: Path, async_: bool) -> None:
    saved = on_ranks("shards_saved", tmp_path, async_=async_)
    loaded = on_ranks("shards_loaded", tmp_path)
    assert loaded == [{**each, "notes": [], "step": 3} for each in saved]
    step = tmp_path / "sharded/step-000000003"
    assert "model.state.0.weight" in names(step / "rank0.safetensors") & names(step / "rank1.safetensors")


@pytest.mark.parametrize("count", [1, 3])
def test_shards_are_loaded_by_another_number_of_ranks(tmp_path: Path, count: int) -> None:
    saved = on_ranks("shards_saved", tmp_path)[0]
    for each in on_ranks("shards_loaded", tmp_path, count):
        assert each["at"] == saved["at"]
        assert "ranks was 2, and is " + str(count) in each["notes"]
        assert "random generators and the place in the data begin anew, for the ranks are others" in each["notes"]


def test_shards_are_loaded_into_a_model_that_is_not_sharded(tmp_path: Path) -> None:
    saved = on_ranks("shards_saved", tmp_path)[0]
    model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 3, bias=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    with TrainingState(tmp_path / "sharded", model=model, optimizer=optimizer) as state:
        state.load()
    assert [each.flatten().tolist() for each in model.parameters()] == saved["at"][:3]
    assert [optimizer.state[each]["exp_avg_sq"].flatten().tolist() for each in model.parameters()] == saved["at"][3:]
    assert optimizer.param_groups[0]["lr"] == 0.01


def test_a_damaged_shard_of_one_rank_is_named_on_all(tmp_path: Path) -> None:
    on_ranks("shards_saved", tmp_path)
    file = tmp_path / "sharded/step-000000003/rank1.safetensors"
    data = bytearray(file.read_bytes())
    length = int.from_bytes(data[:8], "little")
    data[8 + length] ^= 1
    file.write_bytes(data)
    for said in on_ranks("shards_loaded", tmp_path):
        assert "no step can be loaded. step-000000003: tensor" in said
        assert "in rank1.safetensors: not the bytes that were written" in said


@pytest.mark.parametrize("victim", [0, 1])
def test_what_one_rank_cannot_write_none_has_saved(tmp_path: Path, victim: int) -> None:
    said = on_ranks("fails_on", tmp_path, victim=victim)
    assert said[victim] == "step 2 could not be saved: Input/output error | 1"
    assert said[1 - victim].startswith(f"rank {victim}: ")
    assert said[1 - victim].endswith("| 1")


@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_has_ended_is_told_and_the_step_before_stays(tmp_path: Path, victim: int) -> None:
    said = on_ranks("dies_on", tmp_path, victim=victim)
    assert said[victim] == "died"
    assert "a rank has ended, or does not answer" in said[1 - victim]
    with TrainingState(tmp_path / "dies", model=nn.Linear(2, 2)) as state:
        assert state.load().step == 1


def test_the_folder_of_rank_0_counts(tmp_path: Path) -> None:
    assert on_ranks("apart", tmp_path) == ["1", "1"]
    assert (tmp_path / "own0/step-000000001").exists()
    assert not (tmp_path / "own1").exists()
