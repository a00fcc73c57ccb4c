"""Datasets and what goes with them: transforms, random generators, and the workers of a loader that read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.library import Library
from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.values import (
    Arguments,
    Endless,
    Keywords,
    Object,
    Unknown,
    Value,
)

SAMPLES = 8
"""Loaders of one execution whose workers are looked into."""
ELEMENTS = 3
_OF_DATASETS = frozenset({"ConcatDataset", "Subset", "ChainDataset", "StackDataset"})
_SEEDS = frozenset({"seed", "manual_seed", "set_state", "setstate"})
_STATES = frozenset({"get_state", "getstate", "initial_seed", "bit_generator", "device", "spawn"})


@dataclass(eq=False)
class Reading:
    """What a worker of LOADER does to read from DATASET."""

    loader: Object
    dataset: Object
    events: list[events.Event] = field(default_factory=list)

    @property
    def workers(self) -> int | None:
        """How many there are; None where that is not known."""
        found = self.loader.argument("num_workers", 5, 0)
        return found if isinstance(found, int) else None


class Loading(Library):
    """The datasets of an execution. worker: the loader one of whose workers is under way."""

    worker: Object | None
    readings: list[Reading]

    def _generator(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Object("generator", name, None, self.spot(node), arguments, keywords, state={"worker": self.worker})

    def _method_of_generator(
        self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Value:
        if name in _SEEDS:
            return held
        if name not in _STATES:
            self.happen(events.Draw(self.spot(node), held))
        return Unknown(name)

    def _divided_data(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """random_split(dataset, lengths): parts of it."""
        part = Object("dataset", "torch.utils.data.Subset", None, self.spot(node), arguments[:1])
        return Endless(lambda _: part)

    def _joined_data(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Object("dataset", name, None, self.spot(node), arguments, keywords)

    def _pipeline(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """torchvision.transforms.Compose([…]): what is called one after the other."""
        parts = self.listed(arguments[0], node) if arguments else []
        return Object(
            "pipeline", name, None, self.spot(node), state={"parts": parts if isinstance(parts, list) else []}
        )

    def datasets(self, value: Value, deep: int = 0) -> Iterator[Object]:
        """The datasets of the project that VALUE, a dataset, consists of."""
        if isinstance(value, list | tuple):
            for each in value[:SAMPLES]:
                yield from self.datasets(each, deep + 1)
        elif isinstance(value, Object) and value.cls is not None:
            yield value
        elif isinstance(value, Object) and value.kind == "dataset" and deep < SAMPLES:
            yield from self.datasets(list(value.arguments[:1]), deep + 1)

    def read_by_workers(self, node: ast.AST) -> None:
        """What a worker of each loader does that was made."""
        made = [each.made for each in self.events if isinstance(each, events.Made) and each.made.kind == "loader"]
        for loader in made[:SAMPLES]:
            if loader.argument("num_workers", 5, 0) == 0:
                continue
            for dataset in self.datasets(loader.argument("dataset", 0)):
                reading = Reading(loader, dataset)
                outer, self.events, self.worker = self.events, reading.events, loader
                try:
                    self._read_once(dataset, node)
                finally:
                    self.events, self.worker = outer, None
                self.readings.append(reading)

    def _read_once(self, dataset: Object, node: ast.AST) -> None:
        index, stream = dataset.method("__getitem__"), dataset.method("__iter__")
        if index is not None:
            self.call(self.bound(dataset, index), (Unknown("an index"),), {}, node)
        elif stream is not None:
            found = self.call(self.bound(dataset, stream), (), {}, node)
            if isinstance(found, Object) and found.kind == "iterator":  # return iter(self.records)
                self.happen(events.Passage(self.spot(node), found.state["over"]))
            for _ in islice(self.items(found, node), ELEMENTS):
                pass


Library._functions |= {
    **dict.fromkeys(lore()["generators"], Loading._generator),
    "torch.utils.data.random_split": Loading._divided_data,
    **{f"torch.utils.data.{name}": Loading._joined_data for name in _OF_DATASETS},
    **dict.fromkeys(lore()["pipelines"], Loading._pipeline),
}
Library._of_kinds |= {"generator": Loading._method_of_generator}
