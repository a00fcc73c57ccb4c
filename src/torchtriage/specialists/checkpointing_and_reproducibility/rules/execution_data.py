"""What an execution of the program shows about random numbers, and about data that workers make with them."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain, shown
from torchtriage.examine.source.execution.values import (
    Class,
    Function,
    Object,
    Spot,
    Unknown,
)


@detector("source/seeds-incomplete")
def seeds_incomplete(trainings: Trainings) -> Iterator[Sighting]:
    """Some generators are seeded, and one that the training draws from is not."""

    def find(training: Training) -> Facts:
        calls = training.of(events.LibraryCall)
        seeded = {_SEEDS[each.name]: each for each in calls if each.name in _SEEDS}
        if any("seed" in each.name.rpartition(".")[2] and each.name not in _SEEDS for each in calls):
            return  # seed_everything and the like seed all of them
        loops = {loop for each in training.of(events.Backward) for loop, _ in each.loops}
        for call in calls if seeded and "seed" not in training.blind else ():
            kind = "numpy" if call.name.startswith("numpy.random.") else "random"
            if kind == "random" and not any(loop in loops for loop, _ in call.loops):  # the name of a run, say
                continue
            if kind not in seeded and call.name.rpartition(".")[2] in _DRAWS and not training.mentions(_WORKER):
                first = min(each.spot.line for each in seeded.values())
                yield call.spot, f"line {first} seeds {' and '.join(seeded)}; nothing seeds what {call.name} draws from"
                return

    yield from shown(trainings, find)


_SEEDS = {
    "torch.manual_seed": "torch",
    "torch.cuda.manual_seed": "CUDA",
    "torch.cuda.manual_seed_all": "CUDA",
    "random.seed": "random",
    "numpy.random.seed": "numpy",
}
_DRAWS = frozenset({"random", "randint", "shuffle", "choice", "choices", "sample", "uniform", "gauss", "rand", "randn",
                    "permutation", "normal", "beta", "randrange", "random_sample", "binomial"})  # fmt: skip


@detector("source/dataset-owned-rng")
def dataset_owned_rng(trainings: Trainings) -> Iterator[Sighting]:
    """A generator that a dataset makes for itself draws the same numbers in every worker."""

    def find(training: Training) -> Facts:
        for loader in _loaders(training):
            dataset, workers = loader.argument("dataset", 0), loader.argument("num_workers", 5, 0)
            is_many = isinstance(workers, int) and workers > 1 and loader.argument("worker_init_fn", 10) is None
            if not isinstance(dataset, Object) or not is_many or training.mentions(_WORKER):
                continue
            for owner, name in _generators(dataset, 0):
                draw = next(filter(None, (_use_of(name, each) for each in _methods(owner))), None)
                if draw is not None:
                    yield draw, f"each of {workers} workers has a copy of self.{name} and draws the same numbers"

    yield from certain(trainings, find)


_WORKER = re.compile(rb"get_worker_info|worker_init_fn")
_GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "torch.Generator"})


def _generators(owner: Object, deep: int) -> Iterator[tuple[Object, str]]:
    """The random generators that OWNER holds, and what it consists of: transforms."""
    for name, value in owner.values.items():
        if isinstance(value, Unknown) and value.why in _GENERATORS:
            yield owner, name
        for each in value if isinstance(value, list | tuple) else (value,):
            held = each.frame.values.values() if isinstance(each, Function) and each.frame.function else (each,)
            for inner in itertools.chain.from_iterable(
                one if isinstance(one, list | tuple) else (one,) for one in held
            ):
                if isinstance(inner, Object) and inner.kind == "" and deep < _NESTED:
                    yield from _generators(inner, deep + 1)


_NESTED = 3


def _methods(owner: Object) -> Iterator[Function]:
    """The methods of OWNER, by whose first call it is built not counted."""
    lineage = owner.cls.lineage if owner.cls is not None else ()
    for each in lineage:
        if isinstance(each, Class):
            inside = (value for name, value in each.namespace.items() if name != "__init__")
            yield from (value for value in inside if isinstance(value, Function))


def _loaders(training: Training) -> list[Object]:
    return [each.made for each in training.of(events.Made) if each.made.kind == "loader"]


def _use_of(name: str, method: Function | None) -> Spot | None:
    """Where METHOD calls something of self.NAME."""
    for node in ast.walk(method.node) if method is not None else ():
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name) and method:
            return Spot(method.frame.file.path, node)
    return None


@detector("source/iterable-not-sharded")
def iterable_not_sharded(trainings: Trainings) -> Iterator[Sighting]:
    """Each worker of a loader goes through the whole of an IterableDataset."""

    def find(training: Training) -> Facts:
        for loader in _loaders(training):
            dataset, workers = loader.argument("dataset", 0), loader.argument("num_workers", 5, 0)
            is_many = isinstance(workers, int) and workers > 1
            method = dataset.method("__iter__") if isinstance(dataset, Object) else None
            if method is None or not is_many or dataset.cls is None or training.mentions(_WORKER):
                continue
            if "torch.utils.data.IterableDataset" in dataset.cls.externals and not _is_endless(method):
                yield (
                    Spot(method.frame.file.path, method.node),
                    f"it runs from its beginning in each of {workers} workers: {workers} times each sample an epoch",
                )

    yield from certain(trainings, find)


def _is_endless(method: Function) -> bool:
    return any(
        isinstance(each, ast.While) and isinstance(each.test, ast.Constant) and each.test.value
        for each in ast.walk(method.node)
    )
