"""No text crashes the engine: it is examined, or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchtriage import triage
from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.detector import perform
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.text import UnreadableError

CASES = [path.read_bytes() for path in sorted((Path(__file__).parents[2] / "cases").glob("*/*.py"))]
RULES = tuple(triage.detectors("rules"))


def failures(data: bytes) -> list[Inconclusive]:
    try:
        script = Script("a.py", data)
    except UnreadableError:
        return []
    return [outcome for outcome in perform(RULES, script) if isinstance(outcome, Inconclusive)]


@st.composite
def truncated(draw: st.DrawFn) -> bytes:
    """A real script cut off, or with some of its lines left out: much of it still parses."""
    lines = draw(st.sampled_from(CASES)).splitlines(keepends=True)
    start = draw(st.integers(0, len(lines) - 1))
    gone = draw(st.sets(st.integers(0, len(lines) - 1), max_size=5))
    end = draw(st.integers(start, len(lines)))
    return b"".join(line for number, line in enumerate(lines[:end]) if number not in gone)


WORDS = st.sampled_from(
    [
        "self",
        "model",
        "optimizer",
        "scaler",
        "loss",
        "x",
        "losses",
        "total",
        "step",
        "backward",
        "zero_grad",
        "append",
        "torch",
        "nn",
        "Linear",
        "scale",
        "sampler",
    ]
)
NAMES = st.one_of(WORDS, st.builds("{}.{}".format, WORDS, WORDS))
EXPRESSIONS = st.recursive(
    NAMES | st.sampled_from(["1", "'a'", "None", "[]", "{}", "()"]),
    lambda inner: st.one_of(
        st.builds("{}({})".format, NAMES, inner),
        st.builds("({} + {})".format, inner, inner),
        st.builds("{}.{}()".format, inner, WORDS),
        st.builds("[{} for x in {}]".format, inner, inner),
        st.builds("(lambda x: {})({})".format, inner, inner),
        st.builds("({}, *{})".format, inner, inner),
        st.builds("(x := {})".format, inner),
    ),
    max_leaves=6,
)


def indented(body: list[str]) -> str:
    return "\n".join("    " + line for each in body for line in each.splitlines()) or "    pass"


STATEMENTS = st.recursive(
    st.one_of(
        EXPRESSIONS,
        st.builds("{} = {}".format, NAMES, EXPRESSIONS),
        st.builds("{}, *{} = {}".format, NAMES, NAMES, EXPRESSIONS),
        st.builds("{} += {}".format, NAMES, EXPRESSIONS),
        st.builds("{}[{}] = {}".format, NAMES, EXPRESSIONS, EXPRESSIONS),
        st.builds("del {}".format, NAMES),
        st.sampled_from(["pass", "import torch", "from torch import nn", "from torch import *", "global x"]),
    ),
    lambda inner: st.one_of(
        st.builds(lambda n, b: f"for x in {n}:\n{indented(b)}", EXPRESSIONS, st.lists(inner, max_size=3)),
        st.builds(lambda n, b: f"def {n}(self, x, *loss):\n{indented(b)}", WORDS, st.lists(inner, max_size=3)),
        st.builds(lambda n, b: f"class {n}(nn.Module):\n{indented(b)}", WORDS, st.lists(inner, max_size=3)),
        st.builds(lambda n, b: f"if {n}:\n{indented(b)}\nelse:\n    x()", EXPRESSIONS, st.lists(inner, max_size=3)),
        st.builds(lambda n, b: f"with {n} as x:\n{indented(b)}", EXPRESSIONS, st.lists(inner, max_size=3)),
    ),
    max_leaves=10,
)


@settings(deadline=None, max_examples=80)
@given(truncated())
def test_a_script_that_was_cut_off_never_makes_a_rule_fail(data: bytes) -> None:
    assert failures(data) == []


@settings(deadline=None, max_examples=80)
@given(st.lists(STATEMENTS, max_size=6).map("\n".join))
def test_no_code_however_strange_makes_a_rule_fail(code: str) -> None:
    assert failures(code.encode()) == []


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_no_bytes_crash_the_engine(data: bytes) -> None:
    assert failures(data) == []


@pytest.mark.parametrize("data", [b"", b"\n", b"#", b"\xef\xbb\xbf", b"pass"])
def test_a_file_with_nothing_in_it_shows_nothing(data: bytes) -> None:
    assert failures(data) == []


def test_names_that_are_given_themselves_again_and_again_cost_no_more_than_their_lines() -> None:
    doubling = "".join(f"        x{n + 1} = x{n} + x{n}\n" for n in range(200))
    head = "import torch\ndef f(d, losses):\n    for x0 in d:\n"
    code = f"{head}{doubling}        x200.backward()\n        losses.append(x200)\n"
    assert failures(code.encode()) == []
