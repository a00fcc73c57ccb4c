"""Steps that TrainingState has saved: their parts are told, and every byte of them is held against its hash."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.toolkit import TrainingState

pytest.importorskip("xxhash")
pytest.importorskip("safetensors")


def slugs(case: Case) -> set[str]:
    return {found.fault.slug for found in case.findings}


def facts(case: Case) -> list[str]:
    return [item.fact for found in case.findings for item in found.evidence]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    scheduler.step()
    state = TrainingState(tmp_path / "steps", model=model, optimizer=optimizer, scheduler=scheduler)
    for step in (1, 2):
        state.save(step)
    return tmp_path / "steps"


def step(root: Path) -> Path:
    return root / "step-000000002"


def test_a_saved_step_is_one_checkpoint_whose_parts_are_told(root: Path) -> None:
    case = triage.read([step(root)], verify=True)
    (told,) = case.measurements["checkpoint"]["checkpoints"]
    assert (slugs(case), case.inconclusive, told["form"]) == (set(), (), "TrainingState")
    wanted = {"model", "optimizer", "scheduler", "epoch", "step", "rng-python", "rng-numpy", "rng-torch"}
    assert wanted <= set(told["components"])
    assert (told["counts"]["optimizer"], told["counts"]["step"]) == (2.0, 2)
    assert told["verified"]["without_checksum"] == 0


def test_the_folder_of_a_training_holds_a_checkpoint_for_each_step(root: Path) -> None:
    (root / ".writing-000000003-0123456789abcdef").mkdir()
    (root / ".writing-000000003-0123456789abcdef" / "rank0.safetensors").write_bytes(b"half")
    case = triage.read([root])
    assert slugs(case) == set()
    assert [told["file"] for told in case.measurements["checkpoint"]["checkpoints"]] == [
        str(root / "step-000000001"),
        str(step(root)),
    ]
    assert any("did not come to its end" in item.why for item in case.inconclusive)


@pytest.mark.parametrize("name", ["manifest.json", "rank0.json", "rank0.safetensors"])
def test_a_flipped_bit_in_any_of_its_files_is_found(name: str, root: Path) -> None:
    path = step(root) / name
    data = path.read_bytes()
    for at in range(100, len(data), max(1, len(data) // 25)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert slugs(triage.read([step(root)], verify=True)) == {"checkpoint-corrupt"}


def test_the_tensor_of_a_flipped_bit_is_named(root: Path) -> None:
    path = step(root) / "rank0.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 128]))
    (found,) = triage.read([step(root)], verify=True).findings
    assert found.evidence[0].place.module in data[8:2000].decode("utf-8", "replace")


@pytest.mark.parametrize("name", ["rank0.json", "rank0.safetensors"])
def test_a_file_of_another_save_or_none_is_found_without_reading_the_numbers(name: str, root: Path) -> None:
    (step(root) / name).write_bytes((root / "step-000000001" / name).read_bytes())
    assert any("two saves are mixed" in fact for fact in facts(triage.read([step(root)])))
    (step(root) / name).unlink()
    assert any("it is not there, and the manifest names it" in fact for fact in facts(triage.read([step(root)])))


def test_a_link_in_the_place_of_a_file_is_told(root: Path) -> None:
    path = step(root) / "rank0.json"
    path.rename(root / "elsewhere.json")
    path.symlink_to(root / "elsewhere.json")
    assert any("it is a link" in fact for fact in facts(triage.read([step(root)])))


def test_a_manifest_that_was_cut_off_says_so(root: Path) -> None:
    path = step(root) / "manifest.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert any("it is not complete" in fact for fact in facts(triage.read([step(root)])))
