from __future__ import annotations

import io
import pickle
import pickletools
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutated import mutations

from torchtriage.examine.artefact.pickle.named import inspect
from torchtriage.examine.artefact.pickle.opcodes import KEPT, Broken, opcodes


class Calls:
    def __init__(self, *reduced: object) -> None:
        self.reduced = reduced

    def __reduce__(self) -> tuple[object, ...]:
        return self.reduced


SYSTEM = b"cposix\nsystem\n(X\x04\x00\x00\x00truetR."
HOSTILE = {
    "a global": (SYSTEM, "it names posix.system at byte 0"),
    "a global whose name lies on the stack": (pickle.dumps(Calls(eval, ("1",)), 4), "builtins.eval at byte 29"),
    "an instance": (b"(iposix\nsystem\n.", "it names posix.system at byte 1"),
    "a name out of the memo": (
        b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94h\x00h\x01\x93.",
        "it names os.system at byte",
    ),
    "a persistent id": (b"\x80\x02K\x01Q.", "a persistent id at byte 4"),
    "an extension": (b"\x80\x02\x82\x07.", "extension 7 at byte 2"),
    "a memo slot far out": (b"\x80\x02]r\xff\xff\xff\x7f.", "memo slot 2,147,483,647 at byte 3"),
    "bytes that do not follow": (b"\x80\x04\x8e" + b"\xff" * 8 + b"abc", "BINBYTES8 at byte 2 says that 18,446,744"),
    "a number of 2 GiB": (b"\x80\x02\x8b\xff\xff\xff\x7f.", "LONG4 at byte 2 says that 2,147,483,647 bytes follow"),
    "a number of less than no bytes": (b"\x80\x02\x8b\xff\xff\xff\xff.", "LONG4 at byte 2 says that -1 bytes follow"),
    "tuples within each other": (b"\x80\x02N" + b"\x85" * 5000 + b".", "more than 1,000 containers within each other"),
    "laughs by the billion": (
        b"\x80\x02]q\x00" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(40)) + b".",
        "a walk would meet 1,000,000,000 values and more by byte",
    ),
    "a cut": (pickle.dumps(list(range(9)))[:-4], "the file ends at byte"),
    "a cut within a string": (
        pickle.dumps("torchtriage")[:-7],
        "SHORT_BINUNICODE at byte 11 says that 11 bytes follow, and the file ends at byte 19",
    ),
    "a cut within a line": (b"cposix\nsyst", "the file ends within GLOBAL at byte 0"),
    "no pickle": (b"\xff\xfe", r"there is no opcode b'\xff', as byte 0 would be"),
    "nothing": (b"", "the file ends at byte 0"),
}


@pytest.mark.parametrize(("data", "said"), HOSTILE.values(), ids=HOSTILE)
def test_what_a_pickle_asks_for_is_told_with_its_byte(data: bytes, said: str) -> None:
    assert said in inspect(io.BytesIO(data)).said


def test_names_before_a_break_are_told_too() -> None:
    found = inspect(io.BytesIO(SYSTEM[:-3] + b"\xff"))
    assert [each.name for each in found.names] == ["posix.system"]
    assert "there is no opcode" in found.said


def test_calls_are_counted_and_plain_data_have_nothing_to_tell() -> None:
    assert inspect(io.BytesIO(SYSTEM)).calls == 1
    plain = inspect(io.BytesIO(pickle.dumps({"a": [1, (2.0, None)], "b": b"x" * 10_000})))
    assert (plain.said, plain.names, plain.calls) == ("", [], 0)


def test_no_more_opcodes_are_looked_at_than_was_asked_for() -> None:
    found = inspect(io.BytesIO(pickle.dumps(list(range(1000)))), 10)
    assert (found.seen, found.said) == (10, "after 10 opcodes no more were looked at")


def test_of_a_long_argument_only_the_beginning_is_kept() -> None:
    kept = [each.arg for each in opcodes(io.BytesIO(pickle.dumps("x" * 100_000))) if isinstance(each.arg, str)]
    assert [len(each) for each in kept] == [KEPT]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(PLAIN, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_opcodes_are_those_of_pickletools(value: object, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    ours = [(each.name, each.at) for each in opcodes(io.BytesIO(data))]
    assert ours == [(code.name, at) for code, _, at in pickletools.genops(data)]


def test_mutated_pickles_end_in_opcodes_or_in_a_break() -> None:
    seeds = [*(data for data, _ in HOSTILE.values() if data), pickle.dumps({"a": [1, 2.5, "x", (None, True)]})]
    for data in mutations(seeds, 2000):
        found = inspect(io.BytesIO(data))
        assert 0 <= found.at <= len(data)
        with suppress(Broken):
            assert [*opcodes(io.BytesIO(data))][-1].name == "STOP"
