"""What an execution of the program shows about work that every batch or epoch repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.lore import is_loss
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import External, Object, Spot, Unknown, Value, is_concrete

_KINDS = ("optimizer", "wrapper", "compiled", "loader", "scheduler", "scaler")


@detector("source/built-in-loop")
def built_in_loop(trainings: Trainings) -> Iterator[Sighting]:
    """Something that is built once for a training is built for every batch."""

    def find(training: Training) -> Facts:
        restored = {each.loops[-1][0] for each in training.of(events.Restore) if each.loops}
        yield from _built(training, restored)
        yield from _moved(training)
        yield from _criteria(training)
        yield from _loaders(training)

    yield from certain(trainings, find)


def _built(training: Training, restored: set[int]) -> Facts:
    for made in training.every_turn(training.of(events.Made)):
        loop = made.loops[-1][0]
        if loop in restored or not training.executor.endless.get(loop):  # a training of its own for each setting
            continue
        is_own = _is_of_its_own(training, made) or _is_of_setting(training, made) or _is_of_task(training, made)
        if made.made.kind in _KINDS and not is_own and not _has_no_workers(made.made):
            yield made.spot, f"{made.made.made.rpartition('.')[2]} is built anew for every batch"


def _is_of_task(training: Training, made: events.Made) -> bool:
    """Whether what is MADE, an optimizer, steps in a loop of its own: the inner loop of meta-learning."""
    steps = (each for each in training.of(events.OptimizerStep) if each.optimizer is made.made)
    return any(len(each.loops) > len(made.loops) for each in steps)


def _has_no_workers(made: Object) -> bool:
    return made.kind == "loader" and made.argument("num_workers", 5, 0) == 0


def _is_of_setting(training: Training, made: events.Made) -> bool:
    """Whether what is MADE is given something else in every iteration, as in a search: `lr=lr` of `for lr in rates`."""
    way = [id(node) for _, node in made.spot.chain]
    alike = [each.made for each in training.of(events.Made) if [id(node) for _, node in each.spot.chain] == way]
    names = [name for name in made.made.keywords if name not in ("params", "**")]
    return any(not _are_same([each.keywords.get(name) for each in alike]) for name in names)


def _are_same(values: Sequence[Value]) -> bool:
    first, *rest = values
    is_plain = is_concrete(first) or isinstance(first, External)
    return all(each is first or (is_plain and type(each) is type(first) and each == first) for each in rest)


def _is_of_its_own(training: Training, made: events.Made) -> bool:
    """Whether what is MADE is for a model that is made in the same iteration: each task gets one of its own."""
    if "module" in made.made.state:
        alike = [each.made.state.get("module") for each in training.of(events.Made) if each.spot.node is made.spot.node]
        return not _are_same(alike)
    mine = set(training.parameters_of(made.made)) if made.made.kind == "optimizer" else {None}
    others = [each for each in training.optimizers if each is not made.made]
    return not any(mine & set(training.parameters_of(each)) for each in others) and mine != {None}


def _moved(training: Training) -> Facts:
    """Modules that every batch moves to where they are."""
    moves = [each for each in training.of(events.Move) if not each.format and _names_device(each)]
    places = {(id(each.module), id(each.spot.node)) for each in moves if each.loops}
    for move in training.every_turn(moves):
        others = [place for place in places if place[0] == id(move.module)]
        mine = [each for each in training.of(events.Move) if each.module is move.module and each.loops]
        goals = {each.device.why if isinstance(each.device, Unknown) else each.device for each in mine}
        is_away = len(goals) > 1 or not all(map(_names_device, mine))
        if len(others) == 1 and not is_away and _outlives(training, move):
            yield move.spot, "this goes through all parameters of the module, which are there already, for every batch"


def _criteria(training: Training) -> Facts:
    """Loss functions with weights for the classes that every batch makes and copies to the device: by a property."""
    for move in training.every_turn(training.of(events.Move)):
        weighted = move.module.keywords.get("weight", move.module.arguments[0] if move.module.arguments else None)
        if is_loss(move.module.made) and isinstance(weighted, Tensor) and weighted.created and _names_device(move):
            yield move.spot, "this loss and its weights are made anew, and copied to the device, for every batch"


def _names_device(move: events.Move) -> bool:
    return (move.device is not None and move.device != "cpu") or _is_by_cuda(move.spot)


def _is_by_cuda(spot: Spot) -> bool:
    return getattr(getattr(spot.node, "func", None), "attr", "") == "cuda"


def _outlives(training: Training, move: events.Move) -> bool:
    """Whether the module of MOVE is the same one in every iteration."""
    alike = [each.module for each in training.of(events.Move) if each.spot.node is move.spot.node]
    return len(alike) > 1 and all(each is alike[0] for each in alike)


def _loaders(training: Training) -> Facts:
    """Loaders with workers that are the same in every epoch, and made anew for each."""
    batches = {each.loops for each in training.of(events.Backward)}
    around = {loops[depth][0] for loops in batches for depth in range(len(loops) - 1)}
    started = {each.loops[-1][0] for each in training.of(events.Made) if each.made.kind == "optimizer" and each.loops}
    seen: dict[int, list[events.Made]] = {}
    for made in training.of(events.Made):
        is_repeated = bool(made.loops) and made.loops[-1][0] in around - started
        if made.made.kind == "loader" and is_repeated and not _has_no_workers(made.made):
            seen.setdefault(id(made.spot.node), []).append(made)
    for alike in seen.values():
        loaders = [each.made for each in alike]
        is_same = all(map(_are_same, zip(*(each.arguments for each in loaders), strict=False))) and all(
            _are_same([each.keywords.get(name) for each in loaders]) for name in loaders[0].keywords
        )
        if len(alike) > 1 and is_same:
            yield alike[0].spot, "this DataLoader and its worker processes are made anew for every epoch"
