"""What readings say of norms that rise over the depth or over time, and of units without a gradient."""

from __future__ import annotations

from typing import Any

import pytest
from records import Events, evidence, found, steps

from torchtriage.specialists.debugging_techniques.readings.gradients import (
    dead_units,
    gradients_exploding,
    gradients_vanishing,
)


def layers(*logs: float, looks: int = 5) -> Events:
    """LOOKS lines with a weight of 100 numbers for each of LOGS, the power of ten of its gradient per number."""
    each = [[f"blocks.{at}.weight", 10.0 ** (log + 1), 100] for at, log in enumerate(logs)]
    return [{"kind": "layers", "step": 8 * n, "at": 8 * n, "optimizer": 0, "layers": each} for n in range(looks)]


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param(layers(-8, -7, -6, -5, -4, -3, -2, -1, 0), {"gradients-vanishing"}, id="a power of ten a layer"),
        pytest.param(layers(-3, -2.6, -2, -1.5, -1, -0.5, 0, 0, 0), set(), id="less than three powers in all"),
        pytest.param(layers(-8, 0, 0, 0, 0, 0, 0, 0, 0), set(), id="one embedding whose rows are seldom used"),
        pytest.param(layers(-8, 0, -7, 0, -6, 0, -5, 0, -4), set(), id="not by depth"),
        pytest.param(layers(-8, -4, 0), set(), id="three layers"),
        pytest.param(layers(-8, -7, -6, -5, -4, -3, -2, -1, 0, looks=2), set(), id="seen twice"),
        pytest.param(layers(0, -1, -2, -3, -4, -5, -6, -7, -8), set(), id="the last layers get less"),
        pytest.param(layers(-4, -4, -4, -4, -4, -3.9, -3.9, 0, 0), set(), id="a new head on a trunk"),
        pytest.param(layers(-9, -9.5, -1, -2, 0), {"gradients-vanishing"}, id="two parts with nothing between them"),
        pytest.param(layers(-9, -1, -2, 0), set(), id="one layer of four"),
        pytest.param(layers(-9, -9.5, -4.5, -2, 0), set(), id="by less than five powers"),
        pytest.param(
            [{**each, "biases": layers(-6, -5, -4, -3, -2, -1, 0)[0]["layers"]} for each in layers(*[-9.0] * 7)],
            {"gradients-vanishing"},
            id="of biases, where signals shrink as well",
        ),
        pytest.param(
            [*layers(-8, -7, -6, -5, -4, -3, 0, looks=1), *({**e, "at": e["at"] + 8} for e in layers(*[0.0] * 7))],
            set(),
            id="in the first step only",
        ),
    ],
)
def test_gradients_vanish_where_they_fall_with_the_distance_from_the_loss(events: Events, slugs: set[str]) -> None:
    assert found(gradients_vanishing, [*steps(40), *events]) == slugs


def test_the_first_layer_is_named_with_both_sizes() -> None:
    item, *others = evidence(gradients_vanishing, layers(-8, -7, -6, -5, -4, -3, -2, -1, 0))
    assert [each.place.module for each in others] == ["blocks", "blocks.1", "blocks.2"]
    assert (item.place.module, item.value, item.spread) == ("blocks.0", pytest.approx(6), (item.value, item.value))
    assert item.fact.startswith(
        "the gradient of blocks.0.weight is 1.0e-08 per weight, that of blocks.8.weight 1.0e+00"
    )


def norms(values: list[float], **fields: Any) -> Events:
    said = {"kind": "grad_norm", "optimizer": 0, "path": "train.py", "line": 9, **fields}
    return [{**said, "step": n, "at": n, "value": value} for n, value in enumerate(values)]


RISING = [1.5**n for n in range(40)]
NAN = {"kind": "non-finite", "step": 39, "at": 39, "seen": "loss", "stage": "unknown"}
LOG = {**NAN, "stage": "loss", "chain": ["Mean", "Log"]}


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([*steps(40, loss=lambda n: 1.2**n), *norms(RISING)], {"gradients-exploding"}, id="with the loss"),
        pytest.param([*steps(40), *norms(RISING), NAN], {"gradients-exploding"}, id="until a number is not finite"),
        pytest.param(
            [*steps(40, loss=lambda n: 9.0 ** max(0, n - 36)), *norms([1.0] * 38 + [1e4, 1e9])],
            {"gradients-exploding"},
            id="until the script gives up",
        ),
        pytest.param([*steps(40), *norms(RISING), LOG], set(), id="until a logarithm of zero"),
        pytest.param([*steps(40), *norms(RISING)], set(), id="while the loss stays"),
        pytest.param([*steps(40, loss=lambda n: 1.2**n), *norms([1.1**n for n in range(40)])], set(), id="45 times"),
        pytest.param([*steps(40, loss=lambda n: 1.2**n), *norms(RISING[:8])], set(), id="eight norms"),
        pytest.param(
            [*steps(40, loss=lambda n: 9.0**n), *norms([3.0, 4e3, 4e17, float("nan")]), NAN],
            {"gradients-exploding"},
            id="in three steps",
        ),
        pytest.param([*steps(40), *norms([3.0, 4e3, 4e17, float("nan")]), NAN], set(), id="not so the loss"),
        pytest.param([*steps(40, loss=lambda n: -(2.0**n)), *norms(RISING)], {"gradients-exploding"}, id="below zero"),
        pytest.param(
            [*steps(40), *norms([1.0] * 20 + [1e6] + [1.0] * 19), NAN], set(), id="one leap in the middle of the run"
        ),
        pytest.param(
            [*steps(40), *norms([1.0] * 39 + [float("inf")]), NAN], set(), id="steady norms before the first infinity"
        ),
        pytest.param(
            [*steps(40, loss=lambda n: 1.2**n), *norms(RISING), {"kind": "carried", "step": 3, "running": 3}],
            set(),
            id="gradients that pile up",
        ),
    ],
)
def test_gradients_explode_where_the_loss_goes_with_them(events: Events, slugs: set[str]) -> None:
    assert found(gradients_exploding, events) == slugs


def test_the_step_the_line_and_the_layer_that_grew_most_are_named() -> None:
    looks = [
        {
            "kind": "layers",
            "step": n,
            "at": n,
            "optimizer": 0,
            "layers": [["a.weight", 1.0, 4], ["b.weight", 4.0**n, 4]],
        }
        for n in (0, 8)
    ]
    births = [
        {"kind": "births", "step": 0, "optimizer": 0, "further": [["the schedule is built here", "train.py", 5]]},
        {"kind": "births", "step": 0, "parameters": {"b.weight": [["b.weight is filled here", "net.py", 3]]}},
    ]
    events = [*steps(40, loss=lambda n: 1.2**n), *norms(RISING), *looks, *births]
    item, *others = evidence(gradients_exploding, events)
    assert [(each.place.path, each.place.line) for each in others] == [("train.py", 5), ("net.py", 3)]
    place = item.place
    assert (place.path, place.line, place.step, place.module) == ("train.py", 9, 14, "b")
    assert item.fact.endswith("past a hundred times the usual at step 14; most in b.weight (7e+04 times)")


def units(*layers: tuple[str, int, int], **fields: Any) -> Events:
    said = {"kind": "units", "step": 48, "at": 48, "over": 24, **fields}
    return [{**said, "layer": name, "of": size, "dead": dead} for name, size, dead in layers]


@pytest.mark.parametrize(
    ("events", "module"),
    [
        pytest.param(units(("a", 64, 60), ("b", 64, 64), after="c"), "a", id="the first dead layer"),
        pytest.param([*units(("a", 64, 64)), *units(("b", 9, 9), after="c")], "b", id="a layer that was heard behind"),
        pytest.param(units(("a", 8, 7)), None, id="seven of eight"),
        pytest.param(units(("a", 64, 40)), None, id="five eighths of a layer"),
        pytest.param(units(("a", 64, 64), ("a", 64, 3)), None, id="a layer that came back"),
        pytest.param([*units(("a", 64, 64)), NAN], None, id="after a number that is not finite"),
    ],
)
def test_a_layer_is_dead_when_nearly_all_its_outputs_are(events: Events, module: str | None) -> None:
    seen = evidence(dead_units, [*steps(30), *events])
    assert [item.place.module for item in seen[:1]] == ([module] if module else [])
    assert found(dead_units, events) == ({"dead-units"} if module else set())
