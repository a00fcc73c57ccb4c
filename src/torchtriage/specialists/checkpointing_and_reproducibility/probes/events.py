"""What the probes of checkpointing and reproducibility write down."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from torchtriage.examine.run.job.events import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchtriage.examine.run.job.events import Further


class Drawn(Event):
    """A random generator that a dataset holds, and what the workers of its loaders show about it; the last one counts.

    container: class and attribute that hold it. generator: its class. path, line: where the attribute is set. of: how
    many workers of one pass have drawn from it, at most, and how many of them began with the same state. again: passes
    that began with a state of the pass before. learned: backward passes on batches of the dataset.
    """

    container: str
    generator: str
    path: str
    line: int
    alike: int
    of: int
    again: int
    learned: int


class Hollow(Event):
    """A file is written with parameters of a model that are empty, or all zeros, and in the model are not.

    names: of the first few. of: how many parameters the model has. numbers: that are lost.
    """

    model: str
    names: Sequence[str]
    empty: int
    zero: int
    of: int
    numbers: int
    path: str
    line: int


class Draw(TypedDict, total=False):
    """What the user's files do with a source of random numbers.

    seeds: some line seeds it. path, line: the first in a loop or function that draws from it, "" and 0 if none does.
    words: in the names around that line.
    """

    seeds: bool
    path: str | None
    line: int
    words: Sequence[str]


class Loose(Event):
    """At the end: a source of random numbers has moved while a model learned, and nobody has seeded it, but others.

    source: "torch", "random" or "numpy". seeded: by anybody. claims: seeded by the user's own lines, of which path and
    line are the last. moved: at how many looks it had. draws: empty for torch, whose every layer draws.
    """

    source: str
    seeded: Sequence[str]
    claims: Sequence[str]
    moved: int
    path: str
    line: int
    draws: Draw


class Stream(Event):
    """An iterable dataset that several workers of a loader read. path, line: of its __iter__, "" and 0 if unknown."""

    dataset: str
    workers: int
    path: str
    line: int
    further: Further = ()


class Repeats(Stream):
    """Every worker has delivered the same batch so many times in succession.

    kinds: how many of those batches differ. values: of a batch that were compared.
    """

    alike: int
    kinds: int
    values: int


class RepeatedSamples(Stream):
    """The first epoch has ended by itself. samples, most: that a worker delivered, at least and at most. different:
    kinds of samples that each delivered, at least. shared: kinds that all delivered.
    """

    samples: int
    different: int
    most: int
    shared: int
