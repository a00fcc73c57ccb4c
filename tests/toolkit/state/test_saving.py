"""What is written comes back; what is damaged, foreign or in the way is told, and the last good step stays."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from torchtriage.core.errors import TriageError
from torchtriage.toolkit import TrainingState
from torchtriage.toolkit.state import disk, hashing, manifest
from torchtriage.toolkit.state.disk import Change
from torchtriage.toolkit.state.manifest import Damaged
from torchtriage.toolkit.state.opening import Opened


class Held:
    """An object of the training with a state that the test chooses."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        self.state = state


def saved(folder: Path, *numbers: int, **options: Any) -> Held:
    held = Held({})
    with TrainingState(folder, held=held, **options) as state:
        for number in numbers:
            held.state = {"value": torch.full((100,), float(number)), "number": number}
            state.save(number)
    return held


def loaded(folder: Path, **options: Any) -> tuple[Any, Held]:
    held = Held(None)
    with TrainingState(folder, held=held) as state:
        return state.load(**options), held


EVERY_TYPE = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64, torch.uint64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.complex32,
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
]  # fmt: skip


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")
def test_tensors_of_every_type_and_form_come_back_bit_by_bit(tmp_path: Path) -> None:
    base = torch.randn(6, 8)
    tensors = {
        str(kind): torch.randint(0, 255, (3, 16), dtype=torch.uint8).view(kind)
        for kind in EVERY_TYPE
        if kind != torch.bool
    }
    tensors |= {
        "bool": torch.rand(5) > 0.5, "number": torch.tensor(0.1), "empty": torch.empty(0, 3), "turned": base.t(),
        "part": base[::2, 1:5], "nan": torch.tensor([float("nan"), -0.0, float("inf")]),
        "conjugate": torch.randn(3, dtype=torch.complex64).conj(), "a.b/c ü\n": torch.ones(2),
    }  # fmt: skip
    held = Held({"tensors": tensors, "nested": {"a.b": {"c": torch.zeros(1)}, "a": {"b.c": torch.ones(1)}}})
    with TrainingState(tmp_path, held=held) as state:
        state.save(1)
    _, again = loaded(tmp_path)
    assert again.state["nested"] == {"a.b": {"c": torch.zeros(1)}, "a": {"b.c": torch.ones(1)}}
    for name, each in tensors.items():
        back = again.state["tensors"][name]
        assert (back.dtype, back.shape) == (each.dtype, each.shape), name
        assert bits(back) == bits(each.resolve_conj()), name


def test_the_file_is_one_that_safetensors_reads(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    with TrainingState(tmp_path, model=model) as state:
        state.save(7)
    path = tmp_path / "step-000000007/rank0.safetensors"
    assert torch.equal(load_file(path)["model.state.weight"], model.weight)
    with safe_open(path, "pt") as file:
        assert {key: file.metadata()[key] for key in ("step", "rank")} == {"step": "7", "rank": "0"}


def test_weights_that_are_tied_are_written_once_and_come_back_tied(tmp_path: Path) -> None:
    def made() -> Any:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False))
        model[1].weight = model[0].weight
        return model

    model, again = made(), made()
    with TrainingState(tmp_path, model=model) as state:
        state.save(1)
    names = load_file(tmp_path / "step-000000001/rank0.safetensors")
    assert [name for name in names if name.startswith("model")] == ["model.state.0.weight"]
    with TrainingState(tmp_path, model=again) as state:
        state.load()
    assert torch.equal(again[1].weight, model[0].weight)
    assert again[1].weight is again[0].weight


def test_an_optimizer_goes_by_names_whatever_the_order_of_its_parameters(tmp_path: Path) -> None:
    def made(turned: bool) -> tuple[Any, Any]:
        model = torch.nn.Linear(3, 2)
        parameters = list(model.parameters())
        return model, torch.optim.Adam(parameters[::-1] if turned else parameters, lr=0.3 if turned else 0.1)

    model, optimizer = made(turned=False)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    with TrainingState(tmp_path, model=model, optimizer=optimizer) as state:
        state.save(1)
    again, other = made(turned=True)
    with TrainingState(tmp_path, model=again, optimizer=other) as state:
        state.load()
    assert torch.equal(other.state[again.weight]["exp_avg"], optimizer.state[model.weight]["exp_avg"])
    assert other.param_groups[0]["lr"] == 0.1
    assert other.state[again.bias]["step"] == 1


def test_moments_in_another_type_than_the_weights_keep_it(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    exact = torch.randn(2, 3)
    optimizer.state[model.weight]["momentum_buffer"] = exact.clone()
    with TrainingState(tmp_path, model=model, optimizer=optimizer) as state:
        state.save(1)
        optimizer.state[model.weight]["momentum_buffer"].zero_()
        state.load()
    assert torch.equal(optimizer.state[model.weight]["momentum_buffer"], exact)


def test_a_loaded_optimizer_does_not_hold_the_file(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    with TrainingState(tmp_path, model=model, optimizer=optimizer) as state:
        state.save(1)
        state.load()
        for each in optimizer.state[model.weight].values():
            each.add_(1)
        state.save(2)
    Opened(tmp_path / "step-000000001").verify()


def refitted(folder: Path, **parts: Any) -> TriageError:
    with TrainingState(folder, **parts) as state, pytest.raises(TriageError) as caught:
        state.load()
    return caught.value


def test_what_does_not_fit_is_told_all_at_once_and_nothing_is_changed(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    with TrainingState(tmp_path, model=model, optimizer=optimizer, scheduler=scheduler) as state:
        state.save(1)
    other = torch.nn.Sequential(
        torch.nn.Linear(3, 2, bias=False), torch.nn.Linear(2, 1).double(), torch.nn.Linear(4, 4)
    )
    before = {name: each.clone() for name, each in other.state_dict().items()}
    sgd = torch.optim.SGD(other.parameters(), lr=1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, 3)
    error = refitted(tmp_path, model=other, optimizer=sgd, scheduler=cosine, ema=torch.nn.Linear(1, 1))
    assert error.what == (
        "ema is registered, and was not saved; model has now 2.bias, 2.weight; model had 0.bias; "
        "model 1.weight is float64 [1, 2] here, and was float32 [1, 2]; model 1.bias is float64 [1] here, and was float32 [1]; "
        "optimizer is a SGD here, and was a Adam; scheduler is a CosineAnnealingLR here, and was a StepLR"
    )
    assert all(torch.equal(before[name], each) for name, each in other.state_dict().items())
    adam = torch.optim.Adam(model[0].parameters())
    error = refitted(tmp_path, model=model, optimizer=adam)
    assert (
        error.what == "scheduler was saved, and is not registered; optimizer group 0 had model.1.bias, model.1.weight"
    )
    with TrainingState(tmp_path, model=model, optimizer=adam) as state:
        assert state.load(without=["scheduler", "optimizer"]).step == 1


def test_a_scaler_that_was_enabled_and_is_not_is_told(tmp_path: Path) -> None:
    with TrainingState(tmp_path, scaler=torch.amp.GradScaler("cpu")) as state:
        state.save(1)
    assert (
        refitted(tmp_path, scaler=torch.amp.GradScaler("cpu", enabled=False)).what
        == "scaler was enabled, and is not here"
    )


def test_wrapped_models_have_the_names_that_they_have_without(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    with TrainingState(tmp_path, model=torch.nn.DataParallel(torch.compile(model, backend="eager"))) as state:
        state.save(1)
    again = torch.nn.Linear(3, 2)
    with TrainingState(tmp_path, model=again) as state:
        state.load()
    assert torch.equal(again.weight, model.weight)


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (lambda: torch.eye(3).to_sparse(), "held.state.value is torch.sparse_coo"),
        (lambda: torch.empty(3, device="meta"), "held.state.value is on the meta device"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "held.state.value is quantized"),
        (
            lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
            "held.state.value is a Tensor, which holds other",
        ),
    ],
    ids=["sparse", "meta", "quantized", "nested"],
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_tensors_without_plain_bytes_are_refused_by_name(
    tmp_path: Path, tensor: Callable[[], torch.Tensor], said: str
) -> None:
    with TrainingState(tmp_path, held=Held({"value": tensor()})) as state, pytest.raises(TriageError, match=said):
        state.save(1)


@dataclasses.dataclass
class Inner:
    depth: int = 3


@dataclasses.dataclass
class Settings:
    lr: float = 0.1
    inner: Inner = dataclasses.field(default_factory=Inner)


def test_a_configuration_of_plain_values_is_taken_and_another_is_refused_by_its_key(tmp_path: Path) -> None:
    for number, config in enumerate(({"lr": 0.1}, Settings(), argparse.Namespace(lr=0.1)), start=1):
        with TrainingState(tmp_path / str(number), config=config) as state:
            state.save(1)
            assert state.load().notes == []
    with pytest.raises(TriageError, match=r"config\.path is a pathlib\.PosixPath, which a checkpoint without pickle"):
        TrainingState(tmp_path, config={"path": Path("x")})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metric": 3}, "metric is a int, which has no state_dict"),
        ({"held": [Held({}), print]}, "held.1 is a builtin_function_or_method, which has no state_dict"),
        ({"keep": 0}, "keep=0 would leave no step"),
    ],
)
def test_what_cannot_be_registered_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(TriageError, match=said):
        TrainingState(tmp_path, **given)


def test_a_loader_that_is_not_registered_is_refused(tmp_path: Path) -> None:
    with TrainingState(tmp_path) as state, pytest.raises(TriageError, match="this loader is not registered"):
        state.batches([1, 2])


def test_nothing_to_load_is_false_and_makes_no_folder(tmp_path: Path) -> None:
    found, _ = loaded(tmp_path / "none")
    assert not found
    assert found.step is None
    assert not (tmp_path / "none").exists()


def test_old_steps_go_only_beyond_keep(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 3, 4, keep=2)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "step-000000003", "step-000000004"]


def test_no_step_is_ever_overwritten(tmp_path: Path) -> None:
    saved(tmp_path, 1, 5)
    for number in (3, 5):
        with pytest.raises(TriageError, match=f"step {number} cannot be saved where step 5 is"):
            saved(tmp_path, number)
    assert loaded(tmp_path)[0].step == 5


def test_a_step_that_its_own_training_saves_again_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    held = Held({"number": 0})
    with TrainingState(tmp_path, held=held, keep=3) as state:
        for number in range(12):
            held.state = {"number": number}
            state.save(5)
    assert sorted(each.name for each in tmp_path.glob("step*")) == [f"step-000000005-{n}" for n in (10, 11, 12)]
    found, again = loaded(tmp_path)
    assert (found.step, again.state) == (5, {"number": 11})
    with TrainingState(tmp_path, held=again) as state:
        state.load()
        state.save(5)
    assert (tmp_path / "step-000000005-13").exists()
    with pytest.raises(TriageError, match="step 5 cannot be saved where step 5 is"):
        saved(tmp_path, 5)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-10] ^= 1
    file.write_bytes(data)


def linked(file: Path) -> None:
    outside = file.parent.parent.parent / "outside"
    shutil.move(file, outside)
    file.symlink_to(outside)


DAMAGE: list[tuple[str, Callable[[Path], Any], str]] = [
    ("manifest.json", Path.unlink, "manifest.json is not there"),
    ("manifest.json", lambda file: file.write_bytes(b""), "manifest.json is empty"),
    ("manifest.json", cut, "manifest.json is not complete or not a manifest"),
    ("manifest.json", flipped, "manifest.json does not have the bytes that were written"),
    ("manifest.json", linked, "manifest.json is a link, which could lead anywhere"),
    ("rank0.json", Path.unlink, "rank0.json is not there"),
    ("rank0.json", cut, "rank0.json does not have the bytes"),
    ("rank0.json", linked, "rank0.json is a link"),
    ("rank0.safetensors", lambda file: file.write_bytes(b""), "rank0.safetensors has 0 bytes, and "),
    ("rank0.safetensors", cut, "rank0.safetensors has "),
    ("rank0.safetensors", linked, "rank0.safetensors is a link"),
    ("rank0.safetensors", lambda file: (file.unlink(), os.mkfifo(file)), "rank0.safetensors is no regular file"),
    ("rank0.safetensors", lambda file: (file.unlink(), file.mkdir()), "rank0.safetensors is no regular file"),
    ("rank0.safetensors", flipped, "tensor state.random.torch in rank0.safetensors: not the bytes"),
]


@pytest.mark.parametrize(("name", "damage", "said"), DAMAGE, ids=[f"{each[0]} {each[2][:40]}" for each in DAMAGE])
def test_a_damaged_step_is_skipped_with_its_reason_and_the_one_before_is_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, damage: Callable[[Path], Any], said: str
) -> None:
    saved(tmp_path / "steps", 1, 2)
    damage(tmp_path / "steps/step-000000002" / name)
    found, held = loaded(tmp_path / "steps")
    assert found.step == 1
    assert [each.name for each in found.skipped] == ["step-000000002"]
    assert found.skipped[0].why.startswith(said)
    assert held.state["value"].unique().tolist() == [1.0]
    assert f"skipped step-000000002: {said}" in caplog.text
    with pytest.raises(TriageError, match="no step can be loaded"):
        loaded(tmp_path / "steps", step=2)
    with TrainingState(tmp_path / "steps", held=held) as state:
        state.load()
        state.save(2)
    assert loaded(tmp_path / "steps")[0].step == 2
    assert [each.name for each in (tmp_path / "steps").iterdir() if each.name.startswith("damaged-step-000000002-")]


def test_a_step_that_is_a_link_and_one_of_another_name_are_skipped(tmp_path: Path) -> None:
    saved(tmp_path / "steps", 1)
    (tmp_path / "steps/step-000000009").symlink_to(tmp_path / "steps/step-000000001")
    shutil.copytree(tmp_path / "steps/step-000000001", tmp_path / "steps/step-000000008")
    (tmp_path / "steps/step-000000007").write_text("")
    found, _ = loaded(tmp_path / "steps")
    assert found.step == 1
    assert [each.why for each in found.skipped] == [
        "step-000000009 is a link, which could lead anywhere",
        "manifest.json is of step 1, and not of step-000000008",
        "step-000000007 is no folder",
    ]


def test_where_no_step_is_whole_a_training_does_not_silently_begin_anew(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    for number in (1, 2):
        flipped(tmp_path / f"step-00000000{number}/rank0.json")
    with pytest.raises(
        TriageError, match=r"no step can be loaded\. step-000000002: rank0.json .*; step-000000001: rank0"
    ):
        loaded(tmp_path)


def test_a_save_that_was_not_finished_is_told_and_cleared_away_by_the_next(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    shutil.copytree(tmp_path / "step-000000001", tmp_path / ".writing-000000002-0123456789abcdef")
    found, held = loaded(tmp_path)
    assert [each.why for each in found.skipped] == ["a process ended while it wrote or removed step 2"]
    with TrainingState(tmp_path, held=held) as state:
        state.save(2)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "step-000000001", "step-000000002"]


def hostile(folder: Path, change: Callable[[dict[str, Any]], Any]) -> str:
    """What is said of a step whose manifest has been changed and hashed again by somebody who knows how."""
    path = folder / "step-000000001" / manifest.NAME
    body = json.loads(path.read_bytes())["body"]
    change(body)
    packed = json.dumps(body).encode()
    path.write_bytes(b'{"xxh3_128":"%s","body":%s}\n' % (hashing.of(packed).encode(), packed))
    with pytest.raises(Damaged) as caught:
        Opened(path.parent).verify()
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: body.update(step=-1), "Expected `int` >= 0"),
        (lambda body: body.update(version=2), "manifest.json is not one that this version of torchtriage reads"),
        (lambda body: body.update(shards=[]), "manifest.json names no shard"),
        (lambda body: body.update(more="../../etc"), "unknown field"),
        (lambda body: body.update(save="../../etc/passwd"), "Expected `str` matching regex"),
        (lambda body: body["shards"].append(dict(body["shards"][0])), "rank1.json is not there"),
        (lambda body: body["shards"][0].update(bytes=10**15), "rank0.safetensors has "),
        (
            lambda body: body["shards"][0]["tensors"].update({"../../x": "0" * 32}),
            "is not the file that the manifest names",
        ),
    ],
    ids=range(8),
)
def test_a_manifest_made_by_others_leads_nowhere(tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    saved(tmp_path, 1)
    assert said in hostile(tmp_path, change)


def test_a_full_disk_is_told_with_its_figures_and_the_room_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, 1)

    def full(change: Change) -> None:
        if change.kind == "write" and change.path.endswith("safetensors"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), change.path)

    monkeypatch.setattr(disk, "before", full)
    with pytest.raises(TriageError, match=r"the disk is full: step 2 needs 0\.0 MB, and [\d,.]+ MB are free") as caught:
        saved(tmp_path, 2)
    assert "Step 1 is there as before" in caught.value.do
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "step-000000001"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(TriageError, match="Permission denied"):
        saved(tmp_path / "steps", 1)


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TriageError, match="cannot be read: Not a directory"):
        saved(tmp_path / "file" / "steps", 1)
    with pytest.raises(TriageError, match="cannot be read: Not a directory"):
        loaded(tmp_path / "file")


HOLDS = """
import sys
from torchtriage.toolkit import TrainingState
state = TrainingState({folder!r})
state.save(1)
print("saved", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    script = HOLDS.format(folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"saved\n"
        with pytest.raises(TriageError, match="another process writes checkpoints there"):
            saved(tmp_path, 2)
        first.kill()
    saved(tmp_path, 2)


def test_two_states_of_one_process_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with TrainingState(tmp_path) as one, TrainingState(tmp_path / "." / ".." / tmp_path.name) as two:
        one.save(1)
        with pytest.raises(TriageError, match="another TrainingState of this process"):
            two.save(2)
        one.close()
        two.save(2)


def test_an_asynchronous_save_holds_what_was_there_when_it_was_asked_for(tmp_path: Path) -> None:
    model = torch.nn.Linear(300, 300)
    with TrainingState(tmp_path, async_=True, model=model) as state:
        before = model.weight.detach().clone()
        state.save(1)
        with torch.no_grad():
            model.weight.zero_()
        state.wait()
        state.load()
    assert torch.equal(model.weight, before)


@pytest.mark.parametrize("told", ["save", "wait", "load", "close"])
def test_what_an_asynchronous_save_could_not_do_is_raised_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    def broken(change: Change) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), change.path)

    state = TrainingState(tmp_path, async_=True)
    monkeypatch.setattr(disk, "before", broken)
    state.save(1)
    with pytest.raises(TriageError, match="step 1 could not be saved: Input/output error"):
        getattr(state, told)()
    monkeypatch.setattr(disk, "before", None)
    state.save(2)
    state.close()


def test_without_xxhash_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    with pytest.raises(TriageError, match="xxhash is not installed") as caught:
        saved(tmp_path, 1)
    assert caught.value.do == "pip install 'torchtriage[toolkit]'."


def test_an_older_step_can_be_chosen_and_newer_ones_are_told(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 3)
    found, held = loaded(tmp_path, step=1)
    assert held.state["number"] == 1
    assert found.notes == ["newer steps are there (3, 2): move them away before the next save"]
    with pytest.raises(TriageError, match="there is no step 7") as caught:
        loaded(tmp_path, step=7)
    assert caught.value.do == "Name one that is there: 3, 2, 1."


def test_a_model_of_fsdp_1_is_refused(tmp_path: Path) -> None:
    kind = type("FullyShardedDataParallel", (torch.nn.Linear,), {})
    with pytest.raises(TriageError, match="whose shards TrainingState does not write"):
        TrainingState(tmp_path, model=kind(2, 2))


@pytest.mark.parametrize("step", [-1, 10**18, 1.5, "3", None])
def test_a_step_that_no_folder_can_be_named_by_is_refused(tmp_path: Path, step: Any) -> None:
    with TrainingState(tmp_path, held=Held(1)) as state:
        state.step = step
        with pytest.raises(TriageError, match="no whole number of 0 to"):
            state.save()
        state.save(torch.tensor(3))
        assert (state.load().step, state.step) == (3, 3)


def test_a_save_that_was_refused_is_refused_again(tmp_path: Path) -> None:
    saved(tmp_path, 5)
    with TrainingState(tmp_path, held=Held(1)) as state:
        for _ in range(2):
            with pytest.raises(TriageError, match="no step is ever overwritten"):
                state.save(5)


def test_parts_to_leave_are_named_whole_and_a_wrong_name_is_told(tmp_path: Path) -> None:
    with TrainingState(tmp_path, model=Held(1), model_ema=Held(2)) as state:
        state.save(1)
    model, average = Held(0), Held(0)
    with TrainingState(tmp_path, model=model, model_ema=average) as state:
        with pytest.raises(TriageError, match=r"names no part .* model, model_ema, random"):
            state.load(without=["schedular"])
        state.load(without="model_ema")
    assert (model.state, average.state) == (1, 0)


def test_tensors_in_an_extra_state_come_back_as_tensors(tmp_path: Path) -> None:
    class Extra(torch.nn.Linear):
        extra: Any = None

        def get_extra_state(self) -> Any:
            return self.extra

        def set_extra_state(self, state: Any) -> None:
            self.extra = state

    model = Extra(1, 1)
    model.extra = {"seen": torch.ones(2)}
    with TrainingState(tmp_path, model=model) as state:
        state.save(1)
        model.extra = {}
        state.load()
    assert model.extra["seen"].tolist() == [1, 1]


def test_a_tensor_in_the_configuration_is_compared_by_its_values(tmp_path: Path) -> None:
    with TrainingState(tmp_path, held=Held(1), config={"weights": torch.ones(2)}) as state:
        state.save(1)
        assert state.load().notes == []
    with TrainingState(tmp_path, held=Held(1), config={"weights": torch.zeros(2)}) as state:
        assert "config.weights was tensor([1., 1.])" in state.load().notes[0]


def test_what_is_loaded_in_inference_mode_can_be_trained_on(tmp_path: Path) -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1)).backward()
    optimizer.step()
    with TrainingState(tmp_path, model=model, optimizer=optimizer) as state:
        state.save(1)
        with torch.inference_mode():
            state.load()
        model(torch.ones(1)).backward()
        optimizer.step()
        state.save(2)


def test_what_an_optimizer_of_your_own_says_beside_its_state_comes_back(tmp_path: Path) -> None:
    class Slow(torch.optim.SGD):
        slow = torch.zeros(1)

        def state_dict(self) -> Any:
            return {**super().state_dict(), "slow": self.slow}

        def load_state_dict(self, state: Any) -> None:
            self.slow = state["slow"]
            super().load_state_dict(state)

    model = torch.nn.Linear(1, 1)
    optimizer = Slow(model.parameters(), lr=0.1)
    with TrainingState(tmp_path, model=model, optimizer=optimizer) as state:
        optimizer.slow = torch.ones(1)
        state.save(1)
        optimizer.slow = torch.zeros(1)
        state.load()
    assert optimizer.slow.tolist() == [1]


def test_a_scheduler_made_of_others_than_it_was_is_told(tmp_path: Path) -> None:
    schedulers = torch.optim.lr_scheduler
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    parts = [schedulers.ConstantLR(optimizer), schedulers.ExponentialLR(optimizer, 0.9)]
    with TrainingState(tmp_path, scheduler=schedulers.SequentialLR(optimizer, parts, [3])) as state:
        state.save(1)
        state.load()
    parts = [schedulers.ConstantLR(optimizer), schedulers.StepLR(optimizer, 2)]
    other = TrainingState(tmp_path, scheduler=schedulers.SequentialLR(optimizer, parts, [3]))
    with other, pytest.raises(TriageError, match="is made of ConstantLR, StepLR here, and was of ConstantLR, Exponent"):
        other.load()


def test_two_parts_of_one_name_and_a_keep_that_is_no_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TriageError, match=r"two parts are called held\.1"):
        TrainingState(tmp_path, held={1: Held(1), "1": Held(2)})
    with pytest.raises(TriageError, match="keep='3' is no whole number"):
        TrainingState(tmp_path, keep="3")  # type: ignore[arg-type]


def test_a_lazy_module_that_has_seen_no_batch_is_refused(tmp_path: Path) -> None:
    state = TrainingState(tmp_path, model=torch.nn.LazyLinear(2))
    with state, pytest.raises(TriageError, match=r"weight.* of a lazy module have no shape yet.*Run one batch"):
        state.save(1)
