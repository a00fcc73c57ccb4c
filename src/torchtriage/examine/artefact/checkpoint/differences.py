"""The keys of two checkpoints: what is the same under another name, by prefix, by nesting or by a renamed layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from torchtriage.examine.artefact.checkpoint.tensors import Tensor, tensors

if TYPE_CHECKING:
    from torchtriage.examine.artefact.checkpoint.read import Checkpoint

_MOST = 100_000
_LEAST = 0.9
"""Of the keys of both, a share that must be explained for the explanation to be one."""
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


class Differences(Struct, frozen=True):
    """Of the weights of two checkpoints, A and B.

    same: keys that are in both with the same shape. renamed: keys of A, and those of B that they are. resized: keys
    that are in both with other shapes. only_a, only_b: what is left. rules: what of a name in A is what in B
    ("module." is ""), and for how many keys. nested: where the weights lie in each, "/" for the root. other: parts
    that one alone has.
    """

    a: str
    b: str
    same: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    resized: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    rules: tuple[tuple[str, str, int], ...] = ()
    nested: tuple[str, str] = ("/", "/")
    other: tuple[str, ...] = ()

    @property
    def explains(self) -> bool:
        """Whether nearly all keys of both are the same but for their names."""
        known = len(self.renamed) + len(self.same)
        return bool(self.renamed) and known >= _LEAST * max(known + len(self.only_a), known + len(self.only_b))


def differences(a: Checkpoint, b: Checkpoint) -> Differences:
    """What differs between the keys of the weights of A and B; of their other parts, which of them one alone has."""
    (home, mine), (away, other) = _weights(a), _weights(b)
    same = tuple(key for key, each in mine.items() if key in other and other[key].shape == each.shape)
    resized = {
        key: (each.shape, other[key].shape)
        for key, each in mine.items()
        if key in other and other[key].shape != each.shape
    }
    left = {key: each for key, each in mine.items() if key not in other}
    right = {key: each for key, each in other.items() if key not in mine}
    renamed, rules = _matched(left, right)
    taken = set(renamed.values())
    return Differences(
        a.path,
        b.path,
        same,
        renamed,
        resized,
        tuple(key for key in left if key not in renamed),
        tuple(key for key in right if key not in taken),
        rules,
        (home, away),
        tuple(_parts(a, b)),
    )


def _weights(each: Checkpoint) -> tuple[str, dict[str, Tensor]]:
    """Where the weights lie, and they themselves by key; of a file without any that are told, all its tensors."""
    for path, value in zip(each.found.paths.get("model", ()), each.found.values.get("model", ()), strict=True):
        found = dict(list(tensors(value))[:_MOST])
        if len(each.found.paths["model"]) == 1:
            return path, found
    return "/", dict(each.tensors[:_MOST])


def _parts(a: Checkpoint, b: Checkpoint) -> Iterator[str]:
    for slug, part in a.known.items():
        if a.found.has(slug) != b.found.has(slug):
            yield f"{part.title}: only in {(a if a.found.has(slug) else b).path}"


def _matched(
    left: Mapping[str, Tensor], right: Mapping[str, Tensor]
) -> tuple[dict[str, str], tuple[tuple[str, str, int], ...]]:
    """Keys of LEFT with those of RIGHT: first by a prefix, then by one piece of the name, then by order and shape."""
    renamed: dict[str, str] = {}
    rules: Counter[tuple[str, str]] = Counter()
    for explain in (_prefixed, _replaced, _ordered):
        rest = {key: each for key, each in left.items() if key not in renamed}
        open_ = {key: each for key, each in right.items() if key not in set(renamed.values())}
        if not rest or not open_:
            break
        for key, other, rule in explain(rest, open_):
            renamed[key] = other
            rules[rule] += 1
    return renamed, tuple((one, two, count) for (one, two), count in rules.most_common(20))


Explained = Iterator[tuple[str, str, tuple[str, str]]]


def _prefixed(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> Explained:
    """The prefixes that turn most keys of the one into keys of the other."""
    tails: dict[str, list[str]] = {}
    for key in right:
        tails.setdefault(_tail(key), []).append(key)
    votes: Counter[tuple[str, str]] = Counter()
    for key in left:
        for other in tails.get(_tail(key), ())[:50]:
            votes[_heads(key, other)] += 1
    taken: set[str] = set()
    done: set[str] = set()
    for (mine, theirs), _ in votes.most_common(10):
        for key, each in left.items():
            other = theirs + key[len(mine) :] if key.startswith(mine) else ""
            if key not in done and other in right and other not in taken and right[other].shape == each.shape:
                taken.add(other)
                done.add(key)
                yield key, other, (mine, theirs)


def _tail(key: str) -> str:
    return ".".join(key.split(".")[-2:])


def _heads(key: str, other: str) -> tuple[str, str]:
    """What stands before the longest common end of whole pieces of name."""
    one, two = key.split("."), other.split(".")
    while one and two and one[-1] == two[-1]:
        one.pop()
        two.pop()
    return "".join(f"{each}." for each in one), "".join(f"{each}." for each in two)


def _replaced(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> Explained:
    """One piece of a name for another: "encoder.layer.0.fc1.weight" and "encoder.layer.0.linear1.weight"."""
    votes: Counter[tuple[str, str]] = Counter()
    shapes: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for key, each in right.items():
        shapes.setdefault((_form(key), each.shape), []).append(key)
    for key, each in list(left.items())[:2000]:
        for other in shapes.get((_form(key), each.shape), ())[:50]:
            if piece := _piece(key, other):
                votes[piece] += 1
    taken: set[str] = set()
    done: set[str] = set()
    for (mine, theirs), _ in votes.most_common(50):
        for key, each in left.items():
            other = ".".join(theirs if piece == mine else piece for piece in key.split("."))
            if key not in done and other in right and other not in taken and right[other].shape == each.shape:
                taken.add(other)
                done.add(key)
                yield key, other, (mine, theirs)


def _form(key: str) -> str:
    """What stays when one piece in the middle is renamed: how many pieces there are, and the last."""
    pieces = key.split(".")
    return f"{len(pieces)} {pieces[-1]} {'.'.join(_NUMBER.findall(key))}"


def _piece(key: str, other: str) -> tuple[str, str] | None:
    """The one piece in which two names differ."""
    pairs = [(one, two) for one, two in zip(key.split("."), other.split("."), strict=True) if one != two]
    return pairs[0] if len(set(pairs)) == 1 else None


def _ordered(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> Explained:
    """All that is left on both sides, in the same order with the same shapes: layers that were renamed altogether."""
    mine, theirs = list(left.items()), list(right.items())
    alike = len(mine) == len(theirs) and all(
        one.shape == two.shape and key.rpartition(".")[2] == other.rpartition(".")[2]
        for (key, one), (other, two) in zip(mine, theirs, strict=True)
    )
    if alike:
        for (key, _), (other, _) in zip(mine, theirs, strict=True):
            yield key, other, _heads(key, other)


def said(told: Differences) -> str:
    """In one sentence."""
    known = len(told.same) + len(told.renamed)
    rules = [_rule(*each) for each in told.rules[:4]]
    where = ""
    if told.nested[0] != told.nested[1]:
        where = f"; the weights lie at {told.nested[0]} in the one and at {told.nested[1]} in the other"
    rest = f"; {len(told.only_a):,} keys are only in the one, {len(told.only_b):,} only in the other"
    sizes = "".join(f"; {key}: {list(one)} and {list(two)}" for key, (one, two) in list(told.resized.items())[:3])
    left = rest if told.only_a or told.only_b else ""
    return f"{known:,} tensors have the same shape in both{': ' if rules else ''}{', '.join(rules)}{where}{left}{sizes}"


def _rule(one: str, two: str, count: int) -> str:
    keys = f"{count:,} key{'s' * (count != 1)}"
    if one and two:
        return f"{one} in the one is {two} in the other ({keys})"
    return f"the {'one' if one else 'other'} has {one or two} before {keys}"


def as_dict(told: Differences, most: int = 400) -> dict[str, Any]:
    """For the figures: the mapping itself, as far as it is shown."""
    return {
        "a": told.a,
        "b": told.b,
        "said": said(told),
        "same": len(told.same),
        "renamed": dict(list(told.renamed.items())[:most]),
        "rules": [{"a": one, "b": two, "keys": count} for one, two, count in told.rules],
        "resized": {key: [list(one), list(two)] for key, (one, two) in list(told.resized.items())[:most]},
        "only_a": list(told.only_a[:most]),
        "only_b": list(told.only_b[:most]),
        "nested": list(told.nested),
        "parts": list(told.other),
    }
