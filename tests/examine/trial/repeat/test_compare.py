"""Where two legs part, told from lines made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchtriage.examine.trial.repeat import record
from torchtriage.examine.trial.repeat.compare import Difference, compared, first
from torchtriage.examine.trial.repeat.explain import explanations, reordered
from torchtriage.examine.trial.repeat.pinpoint import origin
from torchtriage.examine.trial.repeat.record import Told

STEP = [("in", "Net#0"), ("out", "body"), ("out", "head"), ("loss", "0"), ("grad", "head.weight"),
        ("grad", "body.weight"), ("param", "body.weight"), ("param", "head.weight")]  # fmt: skip


def told(folder: Path, turns: list[dict[str, Any]], *others: dict[str, Any], rank: int = 0) -> Told:
    """A leg of turns: "by", "changes" by place in STEP, "items" instead of STEP, "rng"."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[tuple[str, str]] = []
    lines: list[dict[str, Any]] = [{"kind": "begin", "turn": 0, "rng": [1, 2, 3, None]}]
    for number, turn in enumerate(turns):
        items = turn.get("items", STEP)
        new = [each for each in dict.fromkeys(items) if each not in names]
        names += new
        marks = [turn.get("changes", {}).get(place, 100 * number + place) for place in range(len(items))]
        lines += [{"kind": "names", "names": new}] if new else []
        lines.append({"kind": "turn", "turn": number, "by": turn.get("by", 0), "seconds": 0.1, "marks": marks,
                      "at": [names.index(each) for each in items], "rng": turn.get("rng", [1, 2, 3, None])})  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in [*lines, *others])
    (folder / f"prints{rank}.jsonl").write_text(text)
    return record.read(folder)


def parted(tmp_path: Path, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> Difference | None:
    return first(told(tmp_path / "one", one), told(tmp_path / "other", other))


@pytest.mark.parametrize(
    ("place", "phase", "module"),
    [
        (0, "data", None),
        (1, "forward", "body"),
        (3, "forward", None),
        (4, "backward", "head"),
        (5, "backward", "body"),
        (6, "update", "body"),
    ],
)
def test_the_first_mark_that_differs_names_step_phase_and_module(
    tmp_path: Path, place: int, phase: str, module: str | None
) -> None:
    spread = {each: -each for each in range(place, len(STEP))}
    found = parted(tmp_path, [{}, {}, {}], [{}, {"changes": spread}, {"changes": {7: -1}}])
    assert found is not None
    assert (found.step, found.phase, found.module) == (2, phase, module)


def test_what_reaches_no_result_is_no_difference(tmp_path: Path) -> None:
    items = [*STEP[:3], ("aside", "head"), *STEP[3:]]
    one, other = [{"items": items}] * 3, [{"items": items, "changes": {0: -1, 3: -number}} for number in (1, 2, 3)]
    assert parted(tmp_path, one, other) is None


def test_what_differed_before_to_no_effect_is_not_blamed_later(tmp_path: Path) -> None:
    items = [("batch", "1"), *STEP]
    one = [{"items": items}] * 3
    other = [
        {"items": items, "changes": {0: -1}},
        {"items": items, "changes": {0: -2}},
        {"items": items, "changes": {0: -3, 3: -1, 4: -1, 5: -1}},
    ]
    found = parted(tmp_path, one, other)
    assert found is not None
    assert (found.step, found.phase, found.module) == (3, "forward", "head")


def test_runs_that_do_other_things_part_where_their_ways_do(tmp_path: Path) -> None:
    longer = [*STEP[:2], ("out", "extra"), *STEP[2:]]
    found = parted(tmp_path, [{}, {}], [{}, {"items": longer, "changes": {4: -1}}])
    assert found is not None
    assert (found.step, found.path, found.item.name) == (2, True, "head")


def test_gradients_may_come_in_any_order(tmp_path: Path) -> None:
    turned = [*STEP[:4], STEP[5], STEP[4], *STEP[6:]]
    assert parted(tmp_path, [{}], [{"items": turned, "changes": {4: 5, 5: 4}}]) is None


def test_two_optimizers_in_turns_make_one_step_and_one_after_the_other_two(tmp_path: Path) -> None:
    turns = [{"by": number} for number in (0, 1, 0, 1, 0, 1)]
    assert told(tmp_path / "turns", turns).ranks[0].count == 3
    assert told(tmp_path / "after", [{"by": number} for number in (0, 0, 1, 1)]).ranks[0].count == 4
    assert told(tmp_path / "none", [{"by": -1}, {"by": -1}, {"by": -2}]).ranks[0].count == 2


def test_generators_that_had_other_states_when_the_step_began_are_named(tmp_path: Path) -> None:
    found = parted(tmp_path, [{}, {}], [{"rng": [1, 9, 3, None]}, {"changes": dict.fromkeys(range(8), -1)}])
    assert found is not None
    assert found.states == ("random",)


def test_the_rank_that_gets_other_data_is_named_before_those_that_sum_its_gradients(tmp_path: Path) -> None:
    legs = []
    for leg, data in (("one", {}), ("other", {0: -1, 4: -2})):
        told(tmp_path / leg, [{"changes": {4: -2} if data else {}}])
        legs.append(told(tmp_path / leg, [{"changes": data}], rank=1))
    found = first(*legs)
    assert found is not None
    assert (found.rank, found.phase) == (1, "data")
    assert compared(*legs) == 1


def operation(name: str, got: list[int], gave: list[int], **fields: Any) -> dict[str, Any]:
    about = {"module": "body", "path": "train.py", "line": 7, "numbers": 0, "of": [], "calls": 1, "part": "forward"}
    return {"kind": "op", "turn": 0, "op": f"aten.{name}", "got": got, "gave": gave, **about, **fields}


def test_the_operation_is_the_first_whose_difference_reaches_a_result(tmp_path: Path) -> None:
    def leg(name: str, clock: int, bad: int) -> Told:
        lines = [
            operation("lift_fresh.default", [clock], [clock], line=3, calls=0),
            operation("mm.default", [1, 2], [bad]),
            operation("relu.default", [bad], [bad + 1]),
        ]
        return told(tmp_path / name, [{"changes": {1: bad, 3: bad + 1}}], *lines)

    one, other = leg("one", 11, 50), leg("other", 12, 60)
    found = origin(one.ranks[0], other.ranks[0], (0, 0))
    assert found is not None
    assert (found.op, found.how, found.line, found.early) == ("mm.default", "kernel", 7, False)


def test_memory_that_was_written_over_carries_no_difference(tmp_path: Path) -> None:
    def leg(name: str, drawn: int, bad: int) -> Told:
        lines = [
            operation("normal_.default", [], [drawn], into=[77], random=True, line=2, calls=0),
            operation("fill_.Scalar", [], [5], into=[77], line=3, calls=0),
            operation("add.Tensor", [5, bad], [bad + 1], of=[77, 78], line=9),
        ]
        return told(tmp_path / name, [{"changes": {1: bad + 1, 3: bad + 1}}], *lines)

    found = origin(leg("one", 11, 50).ranks[0], leg("other", 12, 60).ranks[0], (0, 0))
    assert found is not None
    assert (found.how, found.line) == ("outside", 9)


def test_samples_in_another_order_are_told_from_other_samples(tmp_path: Path) -> None:
    legs = [
        told(tmp_path / name, [{}], {"kind": "rows", "turn": 0, "rows": rows})
        for name, rows in (("one", [1, 2, 3, 4]), ("turned", [4, 3, 2, 1]), ("other", [9, 8, 7, 1]))
    ]
    assert reordered(legs[0], legs[1]) == 1.0
    assert reordered(legs[0], legs[2]) == 0.25
    assert reordered(legs[0], legs[0]) is None


def test_what_nothing_speaks_for_is_not_tried(tmp_path: Path) -> None:
    found = parted(tmp_path, [{}], [{"changes": {0: -1, 3: -1}}])
    assert found is not None
    quiet = Told((), conditions={"hash": False, "threads": 1})
    assert explanations(found, None, quiet, quiet) == ["addresses", "seeds"]
    clock = {"what": "time.time", "path": "train.py", "line": 3, "turn": 0}
    seeds = [{"what": "seed", "path": "train.py", "line": 3, "turn": 0, "of": "torch", "value": v} for v in ("1", "2")]
    one, other = (Told((), (clock, seed), {"hash": True, "threads": 4}) for seed in seeds)
    assert explanations(found, None, one, other) == ["entropy", "hash", "seeds", "addresses", "threads"]
