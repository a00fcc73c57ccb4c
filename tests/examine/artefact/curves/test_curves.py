"""Curves as TensorBoard, Lightning and transformers write them; what their series show, and what only looks alike."""

from __future__ import annotations

import json
import math
import shutil
import struct
from pathlib import Path

import artefacts
import pytest

import torchtriage
from torchtriage.examine.artefact.curves import Curve, Curves, measurements, read

REAL = Path(__file__).parents[3] / "cases/artefacts"


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(tag: str, step: int, value: float, form: str = "simple") -> bytes:
    """One scalar as a record of an event file, in one of the three forms that writers use."""
    tensors = {
        "content": field(4, struct.pack("<f", value)),
        "floats": field(5, struct.pack("<f", value)),
        "doubles": field(6, struct.pack("<d", value)),
    }
    kind = varint(1 << 3) + varint(2 if form == "doubles" else 1)
    number = varint(2 << 3 | 5) + struct.pack("<f", value) if form == "simple" else field(8, kind + tensors[form])
    return artefacts.record(varint(2 << 3) + varint(step % 2**64) + field(5, field(1, field(1, tag.encode()) + number)))


def found(path: Path) -> dict[str, int | None]:
    """The faults that the curves at PATH show, each with its step."""
    return {each.fault.slug: each.evidence[0].place.step for each in torchtriage.read([path]).findings}


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("diverges.tfevents", {"gradients-exploding": 5, "non-finite-origin": 22}),
        ("diverges.csv", {"gradients-exploding": 4, "non-finite-origin": 12}),
        ("healthy.tfevents", {}),
        ("healthy.csv", {}),
    ],
)
def test_what_real_loggers_wrote_is_read(name: str, faults: dict[str, int]) -> None:
    assert found(REAL / name) == faults


@pytest.mark.parametrize("form", ["simple", "content", "floats", "doubles"])
def test_each_form_of_a_scalar_is_read(form: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(artefacts.CURVES + event("a/loss", 7, 0.5, form) + event("a/loss", -1, 0.25, form))
    (curve,) = read([str(tmp_path / "x")]).each
    assert curve.points == {"a/loss": ((-1, 0.25), (7, 0.5))}


def test_files_of_one_folder_are_one_training_and_of_two_folders_two(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in (1, 2):
            (tmp_path / folder / f"{number}").write_bytes(artefacts.CURVES + event("loss", number, number / 2))
    told = measurements(read([str(path) for path in sorted(tmp_path.glob("*/*"))]))["trainings"]
    assert [each["loss"] for each in told] == [[[1, 0.5], [2, 1.0]]] * 2


def test_the_state_of_a_trainer_of_transformers_is_read(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 0.5 if step < 3 else math.nan, "grad_norm": 1.0} for step in range(8)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"best_metric": None, "log_history": rows}))
    assert found(tmp_path / "trainer_state.json") == {"non-finite-origin": 3}


def curve(**series: list[float]) -> Curve:
    """A curve whose values stand at steps 0, 1, …; __ in a name stands for a slash."""
    return Curve("x", {name.replace("__", "/"): tuple(enumerate(values)) for name, values in series.items()})


def seen(made: Curve) -> set[str]:
    """The faults that the detectors see in one curve."""
    from torchtriage.catalog.load import catalog
    from torchtriage.diagnose import weigh
    from torchtriage.examine.detector import perform
    from torchtriage.triage import detectors

    outcomes = tuple(perform(detectors("readings", "examine.artefact.curves"), Curves(("x",), (made,))))
    return {each.fault.slug for each in weigh.findings(outcomes, catalog())}


HALVED = [65536 / 2**k for k in range(20)]


@pytest.mark.parametrize(
    ("series", "faults"),
    [
        ({"loss": [1.0] * 5 + [math.nan] * 2}, {"non-finite-origin"}),
        ({"train__loss": [math.inf] * 3}, {"non-finite-origin"}),
        ({"loss": [1.0, math.nan, 1.0, math.nan]}, set()),
        ({"val_loss": [1.0, math.nan, math.nan]}, set()),
        ({"loss_scale": [math.inf] * 4, "lossless": [math.nan] * 4}, set()),
        ({"amp__loss_scale": HALVED}, {"scale-collapsing"}),
        ({"loss_scale": HALVED[:10] + HALVED[8:10] * 5}, set()),
        ({"loss_scale": [65536.0, 32768.0, 32768.0, 65536.0, 65536.0]}, set()),
        ({"loss_scale": HALVED[::4]}, {"scale-collapsing"}),
        ({"scale": [1.0] * 9}, set()),
        ({"grad_norm": [1.0] * 6 + [10.0**k for k in range(9)], "loss": [1.0] * 6 + [2.0**k for k in range(9)]},
         {"gradients-exploding"}),
        ({"grad_norm": [1.0] * 6 + [10.0**k for k in range(9)], "loss": [1.0] * 15}, set()),
        ({"grad_norm": [1.0 + k / 3 for k in range(60)], "loss": [2.0 - k / 40 for k in range(60)]}, set()),
        ({"loss": []}, set()),
    ],
)  # fmt: skip
def test_what_series_show_and_what_only_looks_alike(series: dict[str, list[float]], faults: set[str]) -> None:
    assert seen(curve(**series)) == faults


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("train/loss", "loss"), ("train_loss_step", "loss"), ("Loss/train", "loss"), ("loss", "loss"),
        ("grad_2.0_norm_total", "grad_norm"), ("train/grad_norm", "grad_norm"), ("gradient_norm", "grad_norm"),
        ("lr", "rate"), ("lr-AdamW", "rate"), ("train/learning_rate", "rate"), ("loss_scale", "scale"),
        ("val_loss", None), ("eval/loss", None), ("accuracy", None), ("loss_scale_window", None), ("weight_norm", None),
    ],
)  # fmt: skip
def test_a_series_is_known_by_its_name(name: str, kind: str | None) -> None:
    made = Curve("x", {name: ((0, 1.0),)})
    assert [each for each in ("loss", "grad_norm", "scale", "rate") if made.named(each)] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (-1, "it breaks off in the record"),
        (-41, "it breaks off in the record"),
        (5000, "it breaks off in the record"),
    ],
)
def test_a_file_that_breaks_off_is_read_to_there_and_told(cut: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes((REAL / "diverges.tfevents").read_bytes()[:cut])
    told = read([str(tmp_path / "x")])
    assert len(told.each[0].points["train/loss"]) > 20
    assert said in told.inconclusive[0].why


def test_damage_in_the_middle_is_told_with_its_byte(tmp_path: Path) -> None:
    data = bytearray((REAL / "diverges.tfevents").read_bytes())
    data[3000:3100] = bytes(100)
    (tmp_path / "x").write_bytes(data)
    (why, *_) = (item.why for item in read([str(tmp_path / "x")]).inconclusive)
    assert "byte " in why
    assert "damaged" in why


def test_what_curves_lack_is_told_in_one_sentence(tmp_path: Path) -> None:
    shutil.copy(REAL / "healthy.csv", tmp_path / "metrics.csv")
    case = torchtriage.read([tmp_path])
    assert [item.detector for item in case.inconclusive] == ["curves"]
    assert case.measurements["curves"]["trainings"][0]["names"]["loss"] == "train_loss_step"


def test_a_table_without_numbers_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("epoch,step,loss\n0,0,\n")
    assert "no series of numbers" in read([str(tmp_path / "m.csv")]).inconclusive[0].why


def test_a_state_that_breaks_off_is_said_to_be_cut_and_not_to_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text('{"log_history": [{"loss": 0.5, "step": 1}, {"lo')
    (item,) = read([str(path)]).inconclusive
    assert item.why.startswith(f"{path}: it is no JSON: ")
    assert item.why.endswith("none of it has been read")
