"""The figures of a message of memory: each with its unit, in each wording; those that contradict one another are not used."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from torchtriage.core.query import Field
from torchtriage.triage.messages import decoded

WORDINGS: dict[str, tuple[str, dict[str, float]]] = {
    "torch 1.0": (
        "CUDA out of memory. Tried to allocate 1024.00 KiB (GPU 1; 11.17 GiB total capacity; 10.90 GiB already allocated; "
        "576.00 KiB free; 30.96 MiB cached)",
        {"tried": 0.001, "capacity": 11.17, "allocated": 10.9, "free": 0.001, "gpu": 1},
    ),
    "torch 1.4": (
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 3; 15.75 GiB total capacity; 14.10 GiB already allocated; "
        "512.00 MiB free; 14.30 GiB reserved in total by PyTorch)",
        {"tried": 0.02, "capacity": 15.75, "allocated": 14.1, "free": 0.5, "reserved": 14.3, "gpu": 3},
    ),
    "torch 2.0": (
        "CUDA out of memory. Tried to allocate 300.00 MiB. GPU 2 has a total capacty of 23.65 GiB of which 11.06 MiB is free. "
        "Including non-PyTorch memory, this process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB is "
        "allocated by PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated.",
        {"tried": 0.293, "capacity": 23.65, "free": 0.011, "in_use": 23.6, "allocated": 22.9, "unallocated": 0.19, "gpu": 2},
    ),
    "torch 2.6": (
        "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 500.00 MiB is free. "
        "Process 1234 has 70.00 GiB memory in use. Of the allocated memory 68.00 GiB is allocated by PyTorch, with 1.25 GiB "
        "allocated in private pools (e.g., CUDA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated.",
        {"tried": 1.5, "capacity": 79.15, "free": 0.488, "allocated": 68.0, "unallocated": 1.0, "pooled": 1.25, "gpu": 0},
    ),
    "HIP": (
        "HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.98 GiB of which 0 bytes is free.",
        {"tried": 2.0, "capacity": 15.98, "free": 0.0, "gpu": 0},
    ),
    "wrapped by a terminal": (
        "CUDA out of memory. Tried to allocate 192.00 MiB (GPU 0; 4.00 GiB total capacity; 3.08 GiB\nalready allocated; "
        "0 bytes free; 3.47 GiB reserved in total by PyTorch)",
        {"tried": 0.188, "capacity": 4.0, "allocated": 3.08, "free": 0.0, "reserved": 3.47},
    ),
}  # fmt: skip
WRONG = {
    "more allocated than there is": "Tried to allocate 27.12 GiB. GPU 0 has a total capacty of 11.99 GiB of which 0 bytes is "
    "free. Of the allocated memory 16.16 GiB is allocated by PyTorch, and 144.59 MiB is reserved by PyTorch but unallocated.",
    "more free than there is": "Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 1.00 GiB already allocated; "
    "17.00 GiB free; 2.00 GiB reserved in total by PyTorch)",
    "an overflow": "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free. Including "
    "non-PyTorch memory, this process has 17179869184.00 GiB memory in use.",
    "less reserved than allocated": "Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 5.00 GiB already allocated; "
    "1.00 GiB free; 2.00 GiB reserved in total by PyTorch)",
}  # fmt: skip


def said(text: str) -> tuple[Mapping[str, Field], str]:
    """The fields of the first message of an allocator in TEXT, and what it says."""
    first = next(each for each in decoded(text) if each.signature == "cuda-out-of-memory")
    return first.fields, first.says


@pytest.mark.parametrize("wording", WORDINGS)
def test_each_figure_has_its_unit(wording: str) -> None:
    text, expected = WORDINGS[wording]
    fields, says = said(f"RuntimeError: {text}")
    assert {
        name: fields.get(name if name == "gpu" else f"{name}_gib", fields.get(name)) for name in expected
    } == expected
    assert "contradiction" not in fields
    assert "had no room for" in says


@pytest.mark.parametrize("why", WRONG)
def test_figures_that_contradict_one_another_are_no_facts(why: str) -> None:
    fields, says = said(f"RuntimeError: CUDA out of memory. {WRONG[why]}")
    assert "contradict one another" in says
    assert set(fields) <= {"tried", "tried_unit", "gpu", "contradiction"}


def test_of_several_messages_each_has_its_own_figures() -> None:
    first = WORDINGS["torch 2.0"][0].split(" Including")[0]
    fields, _ = said(f"RuntimeError: {first}\nRuntimeError: {WORDINGS['torch 2.6'][0]}")
    assert fields["capacity_gib"] == 23.65
    assert "allocated_gib" not in fields
