"""Healthy checkpoints of many frameworks: nothing is found in them, and their parts are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stored.genuine import FRAMEWORKS, GENUINE

from torchtriage import triage

ALL_RNG = {"rng-python", "rng-numpy", "rng-torch"}
PARTS = {
    "full": {
        "model",
        "optimizer",
        "scheduler",
        "scaler",
        "epoch",
        "step",
        "best",
        "loader",
        *ALL_RNG,
        "rng-device",
        "config",
    },
    "tutorial": {"model", "optimizer", "epoch"},
    "gan": {"model", "optimizer", "step"},
    "averaged": {"model", "ema", "optimizer", "step"},
    "plateau": {"model", "optimizer", "scheduler", "epoch", "best"},
    "lbfgs": {"model", "optimizer", "epoch"},
    "weights": {"model"},
    "fairscale": {"model", "optimizer", "epoch", "step"},
    "dcp": {"model", "optimizer", "step", "rng-torch"},
    "dcp-weights": {"model"},
    "deepspeed": {"model", "optimizer", "step"},
    "hub": {"model", "config"},
    "rng": ALL_RNG,
    "accelerate": {"model", "optimizer", "scheduler", "step", *ALL_RNG},
    "lightning": {"model", "optimizer", "scheduler", "epoch", "step", "config", "versions"},
    "transformers-trainer": {"model", "optimizer", "scheduler", "epoch", "step", "config", *ALL_RNG},
}


def figures(path: Path, **given: Any) -> tuple[Any, dict[str, Any]]:
    case = triage.read([path], **given)
    (told,) = case.measurements["checkpoint"]["checkpoints"]
    return case, told


@pytest.mark.filterwarnings("ignore")  # of torch: layouts that are beta, scripts that are deprecated, no process group
@pytest.mark.parametrize("name", GENUINE)
def test_nothing_is_found_in_a_healthy_checkpoint(name: str, tmp_path: Path) -> None:
    path = GENUINE[name](tmp_path)
    for verify in (False, True):
        case, told = figures(path, verify=verify)
        assert [(found.fault.slug, found.evidence[0].fact) for found in case.findings] == []
        assert set(told["components"]) == PARTS[name] if name in PARTS else True
        assert told["bytes_read"] > 0


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("accelerate", "accelerate"),
        ("lightning", "lightning"),
        ("transformers", "transformers-trainer"),
        ("transformers", "transformers-model"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_found_in_what_a_framework_writes(package: str, name: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    case, told = figures(FRAMEWORKS[name](tmp_path), verify=True)
    assert [(found.fault.slug, found.evidence[0].fact) for found in case.findings] == []
    assert set(told["components"]) == PARTS.get(name, {"model", "config"})


def test_weights_alone_are_no_incomplete_checkpoint_and_say_what_a_resume_would_lack(tmp_path: Path) -> None:
    (given,) = triage.read([GENUINE["weights"](tmp_path)]).verdicts
    assert given.verdict == "weights-only"
    assert given.evidence[0].fact == (
        "9 tensors, 4.3 KiB (torch); a resume would lack the optimizer's state, the epoch, the global step, the state of "
        "torch's CPU generator, and what else it uses"
    )


def test_the_counts_of_a_resume_point_are_read_out_of_its_tensors(tmp_path: Path) -> None:
    _, told = figures(GENUINE["full"](tmp_path))
    assert told["counts"] == {"optimizer": 3.0, "scheduler": [3], "epoch": 1, "step": 3, "lr": [0.0001]}


def test_the_tree_tells_each_entry_with_its_type_shape_and_bytes(tmp_path: Path) -> None:
    _, told = figures(GENUINE["tied"](tmp_path))
    assert told["tree"] == [
        ["/", "dict of 3"],
        ["/wte.weight", "tensor", "float32", [10, 4], 160],
        ["/lm_head.weight", "tensor", "float32", [10, 4], 160],
        ["/h.0.bias", "tensor", "float32", [4], 16],
    ]
    assert told["dtypes"] == {"float32": {"tensors": 3, "bytes": 336}}


def test_a_long_tree_is_cut(tmp_path: Path) -> None:
    _, told = figures(GENUINE["many"](tmp_path))
    assert (len(told["tree"]), told["tensors"]) == (62, 3000)
    assert told["tree"][-1] == ["/…", "2,940 more"]
