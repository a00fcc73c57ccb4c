from __future__ import annotations

from collections.abc import Callable

import pytest

from torchtriage.core.evidence import Edit, Evidence, Inconclusive, Place, Verdict


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Place(), "the whole job"),
        (Place(path="train.py"), "train.py"),
        (Place(path="train.py", line=41, column=5), "train.py:41:5"),
        (Place(path="a.ipynb", line=2, cell=3), "a.ipynb:2, cell 3"),
        (Place(path="run.pickle", offset=812), "run.pickle, byte 812"),
        (Place(rank=0, step=7, module="blocks.2"), "rank 0, step 7, module blocks.2"),
        (Place(path="t.py", line=9, step=3, container="history"), "t.py:9, step 3, held by history"),
    ],
)
def test_a_place_reads_as_a_point_to_go_and_look_at(place: Place, words: str) -> None:
    assert str(place) == words


@pytest.mark.parametrize(("detector", "fact"), [("", "a fact"), ("run/x", "")])
def test_evidence_says_who_saw_what(detector: str, fact: str) -> None:
    with pytest.raises(ValueError, match="both are needed"):
        Evidence(detector, Place(), fact)


@pytest.mark.parametrize(("value", "spread"), [(None, (0.1, 0.2)), (0.3, (0.1, 0.2)), (float("nan"), (0.1, 0.2))])
def test_a_value_outside_its_spread_is_refused(value: float | None, spread: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="outside its spread"):
        Evidence("run/x", Place(), "a share", value, spread=spread)


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (4, 3)])
def test_an_edit_that_runs_backwards_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="runs backwards"):
        Edit("r", "t.py", start, end, "x")


@pytest.mark.parametrize(("why", "unblock"), [("", "run longer"), ("too short", "")])
def test_inconclusive_says_why_and_what_would_unblock_it(why: str, unblock: str) -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Inconclusive("run/x", why, unblock)


def test_a_verdict_rests_on_evidence(seen: Callable[..., Evidence]) -> None:
    assert Verdict("compute-bound", "Compute", (seen(),)).evidence[0].fact == "a clip"
    with pytest.raises(ValueError, match="needs evidence"):
        Verdict("compute-bound", "Compute", ())  # type: ignore[arg-type]
