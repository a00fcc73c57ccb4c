"""A comment silences a finding when it gives a reason, and is complained of when it does not or has no effect."""

from __future__ import annotations

import json

import pytest

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.seen import Seen, look


@detector("source/marked")
def marked(script: Script):
    """A call of fault()."""
    yield from (Sighting(script.place(call.node)) for call in script.calls("fault"))


def seen(text: str) -> Seen:
    return look("a.py", f"import torch\n{text}\n".encode(), [marked])


@pytest.mark.parametrize(
    "text",
    [
        "fault()  # torchtriage: ignore[marked] because it is meant",
        "fault()  # noqa: E501  # torchtriage: ignore[marked] because it is meant",
        "fault()  #torchtriage:ignore[ marked , other] because it is meant",
        "# torchtriage: ignore[marked] because it is meant\nfault()",
        "# torchtriage: ignore[marked] because it is meant\n\n# and more\nfault()",
        "x = (\n    1,\n    fault(),\n)  # torchtriage: ignore[marked] because it is meant",
        "x = (\n    fault(),  # torchtriage: ignore[marked] because it is meant\n)",
        "# torchtriage: ignore[marked] because it is meant\n@a\n@b(\n    1)\ndef f(x=fault()):\n    pass",
        "for _ in fault():  # torchtriage: ignore[marked] because it is meant\n    pass",
    ],
)
def test_a_comment_with_a_reason_silences_its_statement(text: str) -> None:
    found = seen(text)
    assert found.evidence == ()
    assert found.silenced == 1
    assert [each.why for each in found.inconclusive if "other" not in each.why] == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("fault()  # torchtriage: ignore[marked]", "a.py:2: the suppression has no reason, so it silences nothing"),
        ("fault()  # torchtriage: ignore[marked] because", "a.py:2: the suppression has no reason"),
        ("fault()  # torchtriage: ignore because it is meant", "a.py:2: the comment is not understood"),
        ("fault()  # torchtriage: ignore [marked] because it is meant", "a.py:2: the comment is not understood"),
        ("fault()  # torchtriage: ignore[] because it is meant", "a.py:2: the suppression names no fault"),
        ("fault()  # torchtriage: ignore[other] because it is meant", "a.py:2: nothing of other is found here"),
        ("x = 1  # torchtriage: ignore[marked] because it was\nfault()", "a.py:2: nothing of marked is found here"),
        ("fault()\n# torchtriage: ignore[marked] because it is meant\nx = 1", "a.py:3: nothing of marked"),
        ("def f():\n    fault()\n# torchtriage: ignore[marked] because of f\n", "a.py:4: nothing of marked"),
    ],
)
def test_a_comment_without_a_reason_or_an_effect_is_complained_of(text: str, complaint: str) -> None:
    found = seen(text)
    assert len(found.evidence) == 1
    assert found.silenced == 0
    (complained,) = found.inconclusive
    assert complained.why.startswith(complaint)


def test_a_string_that_looks_like_a_comment_is_none() -> None:
    found = seen('x = "# torchtriage: ignore[marked] because it is meant"; fault()')
    assert (len(found.evidence), found.inconclusive) == (1, ())


def test_a_comment_in_a_notebook_is_named_by_its_cell() -> None:
    cells = ["import torch", "x = 1\nfault()  # torchtriage: ignore[marked]"]
    data = json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}).encode()
    (complained,) = look("a.ipynb", data, [marked]).inconclusive
    assert complained.why.startswith("a.ipynb:2, cell 2: the suppression has no reason")
