"""Messages that were pasted without the traceback that they came with."""

from __future__ import annotations

from pathlib import Path

import pytest

import torchtriage

SIZES = "size mismatch for head.weight: copying a param with shape torch.Size([10, 5]) from checkpoint, the shape in current model is torch.Size([12, 5])."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("expected scalar type Half but found Float", "dtype-mismatch"),
        (f"        {SIZES}", "keys-mismatched"),
        ("> mat1 and mat2 shapes cannot be multiplied (4x16 and 17x2)", "shape-mismatch"),
        (
            "!!! Exception during processing !!! mat1 and mat2 must have the same dtype, but got Half and Float",
            "dtype-mismatch",
        ),
    ],
)
def test_a_message_without_the_type_of_its_error_is_found(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"some words before\n{text}\n")
    assert [each.fault.slug for each in torchtriage.read([tmp_path / "a.log"]).findings] == [fault]


@pytest.mark.parametrize(
    "text",
    [
        "this page explains what expected scalar type Half but found Float means",
        "expected scalar type Half but found Float\n" + "".join(f"step {step} loss 1.{step}\n" for step in range(9)),
        "expected scalar type Half but found Float\n" + "x" * 70_000,
    ],
)
def test_prose_survived_errors_and_long_logs_are_left_alone(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(text)
    assert torchtriage.read([tmp_path / "a.log"]).findings == ()
