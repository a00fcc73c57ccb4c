"""An edit stays only where its finding is gone and no other has come."""

from __future__ import annotations

import pytest

from torchtriage.core.evidence import Edit, Evidence, Place
from torchtriage.core.fault import Confidence, EditSafety, Fault, FaultClass, Persona, Remedy, Sign
from torchtriage.core.finding import Finding
from torchtriage.core.some import some
from torchtriage.examine.source.edits import changed, mended


def edit(start: int, end: int, text: str, remedy: str = "safe") -> Edit:
    return Edit(remedy, "a.py", start, end, text)


def finding(slug: str, anchor: str, *edits: Edit) -> Finding:
    safe = Remedy("safe", "Change it", "always", "none", 1, "look at it", EditSafety.SAFE)
    unsafe = Remedy("unsafe", "Change it", "always", "none", 2, "look at it", EditSafety.UNSAFE)
    sign = Sign(f"source/{slug}")
    fault = Fault(slug, "debugging-techniques", slug, FaultClass.WRONG, Confidence.HIGH, Persona.DEFAULT,
                  some([sign], "signs"), some([safe, unsafe], "remedies"))  # fmt: skip
    place = Place("a.py", 1, anchor=anchor)
    return Finding(fault, some([Evidence(sign.detector, place, "seen", edits=tuple(edits))], "evidence"))


def words(data: bytes) -> list[Finding] | None:
    """Every "bad" wants to be "good", "rash" to be "calm" (unsafe), "odd" to be "bad", "lost" to stay."""
    if b"(" in data:
        return None
    wants = {b"bad": (b"good", "safe"), b"odd": (b"bad", "safe"), b"rash": (b"calm", "unsafe"), b"open": (b"(", "safe")}
    wants[b"lost"] = (b"lost", "safe")
    found, at = [], 0
    for word in data.split(b" "):
        if word in wants:
            text, remedy = wants[word]
            found.append(finding(word.decode(), word.decode(), edit(at, at + len(word), text.decode(), remedy)))
        at += len(word) + 1
    return found


@pytest.mark.parametrize(
    ("before", "after", "done", "refused"),
    [
        (b"a bad word", b"a good word", 1, 0),
        (b"bad bad bad", b"good good good", 3, 0),
        (b"odd one", b"odd one", 0, 1),
        (b"odd bad", b"odd good", 1, 1),
        (b"lost bad lost", b"lost good lost", 1, 2),
        (b"open bad", b"open good", 1, 1),
        (b"rash bad", b"rash good", 1, 0),
        (b"fine", b"fine", 0, 0),
        (b"(", b"(", 0, 0),
    ],
)
def test_edits_stay_where_they_keep_their_word(before: bytes, after: bytes, done: int, refused: int) -> None:
    found = mended("a.py", before, words)
    assert (found.after, len(found.done), len(found.refused)) == (after, done, refused)
    assert mended("a.py", after, words).after == after


def test_unsafe_edits_are_made_when_they_are_asked_for() -> None:
    assert mended("a.py", b"rash bad", words, unsafe=True).after == b"calm good"


def test_several_edits_are_made_at_once_wherever_they_stand() -> None:
    assert changed(b"0123456789", [edit(8, 9, "b"), edit(0, 0, "a"), edit(2, 5, "")]) == b"a01567b9"


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap at byte 3"):
        changed(b"0123456789", [edit(2, 5, "x"), edit(3, 6, "y")])


@pytest.mark.parametrize(
    ("before", "is_bound"),
    [
        ("import copy\n\nbest = HERE\n", True),
        ("import torch\nimport copy as copy\n\ndef f(model):\n    return HERE\n", True),
        ("try:\n    import copy\nexcept ImportError:\n    pass\nbest = HERE\n", True),
        ("best = copy.copy(HERE)\n", True),
        ("best = HERE\nimport copy\n", False),
        ("def g():\n    import copy\n\nbest = HERE\n", False),
        ("if TYPE_CHECKING:\n    import copy\nbest = HERE\n", False),
        ("import copy\n\ndef f(model, copy=True):\n    return HERE\n", False),
        ("import copy\n\ndef f(model):\n    copy = 1\n    return HERE\n", False),
        ("best = HERE\n", False),
    ],
)
def test_a_module_that_an_edit_names_is_imported_where_the_edit_runs(before: str, is_bound: bool) -> None:
    at = before.index("HERE")
    proposed = edit(at, at + 4, "copy.deepcopy(HERE)")

    def judge(data: bytes) -> list[Finding]:
        return [] if b"deepcopy" in data else [finding("aliased", "HERE", proposed)]

    assert bool(mended("a.py", before.encode(), judge).done) == is_bound
