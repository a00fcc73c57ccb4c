"""The operators of torch: what they do to memory, graphs, dtypes and random state, from operators.txt."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Unpack

Home: TypeAlias = Literal["torch", "method", "attribute", "functional", "special", "linalg", "fft"]
"""The module that has it. method, attribute: of a tensor."""
Returns: TypeAlias = Literal["tensor", "tensors", "either", "value", "nothing"]
"""either: one tensor or several, by its arguments. value: what is no tensor."""
Memory: TypeAlias = Literal["fresh", "alias", "itself", "maybe", "-", "?"]
"""Whether the result shares memory with an argument. itself: it is the argument. maybe: that depends on the input."""
Gradient: TypeAlias = Literal["kept", "zero", "none", "cut", "-", "?"]
"""zero: the derivative is zero almost everywhere. none: torch has no derivative. cut: the result has no graph."""
Dtype: TypeAlias = Literal[
    "same", "float", "complex", "given", "default", "bool", "int64", "int32", "int16", "int8", "uint64", "uint8",
    "float64", "float32", "float16", "bfloat16", "complex128", "complex64", "complex32", "-", "?",
]  # fmt: skip
"""float: integers become floating point. given: an argument says. default: that of torch.get_default_dtype()."""
Trait: TypeAlias = Literal[
    "factory", "converts", "joins", "indices", "scalar", "random", "sync", "moves", "lowered", "saves",
    "pole0", "pole1", "pointwise", "reduction",
]  # fmt: skip
"""factory: it makes a tensor from none; converts: of data. joins: it makes one of a list of tensors. indices: values
come with their places, perhaps for one dimension only. scalar: the result has no dimensions unless one is named. sync:
the host waits for a value, or for a size that depends on values. moves: to another device. lowered: autocast computes
it in half precision. saves: its derivative is computed from its result. pole0, pole1: its derivative is not finite at
0, at 1."""


class Facts(NamedTuple):
    """What is known of an operator. writes: the place of the argument that is changed, the receiver's is 0; or "-"."""

    homes: tuple[str, ...]
    returns: str
    memory: str
    writes: str
    gradient: str
    dtype: str
    traits: tuple[str, ...]


@cache
def operators() -> dict[Facts, tuple[str, ...]]:
    """The names by what is known of them; a name may do different things in different modules."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("operators.txt").read_text(encoding="utf-8").splitlines()[1:]:
        name, _, facts = line.partition(" ")
        found.setdefault(facts, []).append(name)
    return {parsed(facts): tuple(names) for facts, names in found.items()}


def parsed(text: str) -> Facts:
    """The facts of one line, behind the name."""
    homes, returns, memory, writes, gradient, dtype, traits = text.split(" ")
    return Facts(tuple(homes.split(",")), returns, memory, writes, gradient, dtype, tuple(traits.split(",")))


class Query(TypedDict, total=False):
    """What is asked of operators."""

    home: Home
    returns: Returns
    memory: Memory
    writes: str
    gradient: Gradient
    dtype: Dtype
    trait: Trait


@cache
def names(**query: Unpack[Query]) -> frozenset[str]:
    """The names of the operators of which all of QUERY holds."""
    home, trait = query.get("home"), query.get("trait")
    asked = [(Facts._fields.index(column), value) for column, value in query.items() if column not in ("home", "trait")]
    found: set[str] = set()
    for facts, group in operators().items():
        is_met = (home is None or home in facts.homes) and (trait is None or trait in facts.traits)
        if is_met and all(facts[place] == value for place, value in asked):
            found.update(group)
    return frozenset(found)
