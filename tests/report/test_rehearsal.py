"""A rehearsal in every form of the report: each says that its figures are simulated."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.report.formats import render
from torchtriage.report.rehearsal import rehearsed

GIB = 2**30
TOLD: dict[str, Any] = {
    "simulated": True,
    "card": "H100",
    "memory": 80 * 10**9,
    "devices": 2,
    "steps": 13,
    "kernels": 53.25,
    "device_seconds": 1.24e-4,
    "waits": [
        {"path": "train.py", "line": 23, "call": "item", "times": 1.0, "in_steps": 13},
        {"path": "train.py", "line": 40, "call": "copy_", "times": 18.0, "in_steps": 1},
    ],
    "copies": [
        {
            "path": "train.py",
            "line": 16,
            "kind": "host-to-device",
            "pinned": False,
            "non_blocking": True,
            "times": 2.0,
            "bytes": 2.0**20,
        }
    ],
    "peak": {
        "rank": 0,
        "device": 0,
        "bytes": 10 * GIB,
        "reserved": 12 * GIB,
        "step": 3,
        "path": "",
        "line": 0,
        "holders": {"parameters": 2 * GIB, "gradients": 2 * GIB, "optimizer_states": 4 * GIB, "other": 2 * GIB},
    },
    "out_of_memory": None,
    "fits": True,
    "absent": [{"name": "torch.compile", "why": "ignored: eager", "path": "train.py", "line": 8, "ends": False}],
}
SAID = [
    "Rehearsal on a simulated device (2 x H100, 74.5 GiB)",
    "10 GiB at the peak in step 3, a line of torch's own (backward): 13.4 % of the card",
    "at the peak: parameters 2 GiB, gradients 2 GiB, optimizer states 4 GiB, activations and other 2 GiB",
    "53.2 in a step (mean of 13 steps); simulated, they take 124 µs at least, by the card's data sheet",
    "1 a step at train.py:23: item",
    "234 times in 1 of 13 steps at train.py:40: a blocking copy",
    "2 a step at train.py:16: 512 KiB each to the device (pageable memory, non-blocking)",
    "torch.compile at train.py:8: ignored: eager",
    "Simulated: it fits, with 10 GiB at the peak",
]


@pytest.mark.parametrize("form", ["console", "html"])
def test_all_of_it_stands_in_the_report_and_is_called_simulated(form: str, ill_run: Case) -> None:
    page = " ".join(render(replace(ill_run, measurements={"rehearsal": TOLD}), form).split()).replace("&#39;", "'")
    assert [said for said in SAID if said not in page] == []


VERDICTS = {
    "it fits": ({}, {}, "Simulated: it fits, with 10 GiB at the peak (2 x H100, 74.5 GiB)."),
    "it does not fit": ({"out_of_memory": {"path": "a.py", "line": 3}}, {}, "Simulated: it does not fit (2 x"),
    "nothing is there": ({"peak": None}, {}, "Simulated: nothing was put on the device"),
    "it ended early": ({}, {"end": {"kind": "exception"}}, "Simulated: 10 GiB at the peak until then"),
    "something is missing": (
        {"absent": [{"name": "triton", "why": "it is not installed", "path": "a.py", "line": 2, "ends": True}]},
        {},
        "Simulated: it ends for lack of triton, at a.py:2",
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_says_whether_it_fits(name: str) -> None:
    changed, beside, said = VERDICTS[name]
    found = rehearsed({"rehearsal": TOLD | changed, **beside})
    assert found is not None
    assert found.verdict.startswith(said)


@pytest.mark.parametrize(
    "told",
    [
        {"card": 3, "memory": "much", "peak": [], "waits": "none", "copies": [1], "absent": {}},
        {"card": "\x1b[31m", "kernels": "many", "steps": 2, "waits": [{}], "copies": [{}], "absent": [{}]},
    ],
)
def test_what_does_not_fit_is_left_out(told: dict[str, Any]) -> None:
    found = rehearsed({"rehearsal": told})
    assert found is not None
    assert "\x1b" not in str(found)


@pytest.mark.parametrize("measurements", [{}, {"rehearsal": None}, {"rehearsal": {}}, {"rehearsal": "yes"}])
def test_a_run_on_a_real_device_says_nothing_of_it(measurements: dict[str, Any]) -> None:
    assert rehearsed(measurements) is None
