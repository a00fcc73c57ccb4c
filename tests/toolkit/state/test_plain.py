"""State as JSON and back: the same value, of the same type, to the last bit; or a refusal that names the key."""

from __future__ import annotations

import math
import random
import struct
from collections import Counter, OrderedDict, deque
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state import plain
from torchtriage.toolkit.state.manifest import Damaged


def refused(_: Any, path: str) -> Any:
    raise AssertionError(path)


def there_and_back(value: Any) -> Any:
    return plain.decoded(plain.parsed(plain.text(plain.encoded(value, "state", refused))), refused)  # type: ignore[arg-type]


LEAVES = some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text() | some.binary()
KEYS = some.text() | some.integers() | some.none() | some.booleans() | some.tuples(some.integers(), some.text())
TREES = some.recursive(
    LEAVES,
    lambda inner: (
        some.lists(inner) | some.lists(inner).map(tuple) | some.dictionaries(KEYS, inner) | some.lists(inner).map(deque)
    ),
    max_leaves=12,
)


@given(TREES)
def test_every_plain_value_comes_back_as_it_was(value: Any) -> None:
    back = there_and_back(value)
    assert back == value
    assert repr(back) == repr(value)


@given(some.floats())
def test_a_float_comes_back_to_the_last_bit(value: float) -> None:
    back = there_and_back(value)
    assert math.isnan(back) if math.isnan(value) else struct.pack("d", back) == struct.pack("d", value)


@pytest.mark.parametrize(
    "value",
    [
        {1: "one", "1": "text"},
        {"$": "mine", "is": 3},
        Counter({30: 2, 60: 1}),
        {3, 1, 2},
        frozenset({"b"}),
        deque([1, 2], maxlen=2),
        1 + 2j,
        10**40,
        torch.float32,
        torch.device("cpu"),
        torch.Size([2, 3]),
        np.float64(0.1),
        np.int32(7),
        random.Random(3).getstate(),
        np.random.default_rng(3).bit_generator.state,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_has_no_word_for_comes_back_with_its_type(value: Any) -> None:
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_arrays_come_back_with_their_type_and_shape() -> None:
    for value in (np.arange(6, dtype=">u2").reshape(2, 3), np.zeros((0, 3), np.float16), np.array([1 + 2j])):
        back = there_and_back(value)
        assert back.dtype == value.dtype
        assert np.array_equal(back, value)


def test_the_state_of_numpy_can_be_set_from_what_comes_back() -> None:
    before = np.random.get_state()
    drawn = np.random.rand(3)
    np.random.set_state(there_and_back(before))
    assert np.array_equal(np.random.rand(3), drawn)


def test_ordered_dictionaries_come_back_in_their_order() -> None:
    assert list(there_and_back(OrderedDict([("b", 1), ("a", 2)]))) == ["b", "a"]


class Own:
    pass


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": {"b": [1, Own()]}}, r"state\.a\.b\[1\] is a .*Own"),
        ({"run": print}, r"state\.run is a builtin_function_or_method"),
        ({Own(): 1}, r"state key .* is a .*Own"),
        (np.array([Own()]), "state is a numpy.ndarray"),
    ],
)
def test_what_only_pickle_could_hold_is_refused_by_its_key(value: Any, said: str) -> None:
    with pytest.raises(TriageError, match=said) as caught:
        plain.encoded(value, "state", refused)
    assert "state_dict" in caught.value.do


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(TriageError, match="holds itself"):
        plain.encoded(value, "state", refused)


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b'{"$": "pickle", "is": 1}', b"\xff"])
def test_a_state_that_we_did_not_write_is_damaged(text: bytes) -> None:
    with pytest.raises(Damaged):
        plain.decoded(plain.parsed(text), refused)  # type: ignore[arg-type]
