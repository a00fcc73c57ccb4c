"""What an execution of the program shows about how often the host waits for the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import PARTLY, Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Spot
from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.nodes import names_in, nodes_in
from torchtriage.examine.source.torch_api.symbols import symbols

_CUDA = re.compile(rb"cuda|accelerator|non_blocking")
_NUMBERS = frozenset({"item", "float", "int", "bool", "round", "format", "print", "str"})
"""Reads of one number each; the others copy a tensor, or seek elements in it."""
_FINITE = symbols().finite_tests
_SHOWN = frozenset(
    {"print", "set_postfix", "set_postfix_str", "set_description", "set_description_str", "write", "info"}
)
_CLOCKS = re.compile(r"time|clock|prof(?!iler)|bench|record|elapsed|memory|watch|measure|tic\b|toc\b|lap", re.I)
"""What is called beside a synchronize() by those who measure: its wait is meant. A profiler needs none."""
_FRESH = re.compile(r"rand|normal|multinomial|bernoulli|poisson|^next$|sample|batch")
"""What brings other data in every iteration of a loop over no loader."""
_COUNTS = frozenset({"range", "trange", "count"})
_SYNCHRONIZE = "torch.cuda.synchronize"
_SHORT = 40
"""Columns of a call that is quoted."""


@dataclass
class _Loop:
    """The waits of each iteration of one loop, as they come. values: what they wait for; the same number read again
    waits for nothing any more. first: the others.
    """

    waits: list[events.Read | events.LibraryCall] = field(default_factory=list)
    first: list[events.Read | events.LibraryCall] = field(default_factory=list)
    values: set[int] = field(default_factory=set)
    copies: int = 0
    """Those that copy a tensor, or wait for everything."""

    @property
    def is_worth_reporting(self) -> bool:
        """Whether it is more than one number."""
        return len(self.values) > 1 or self.copies > 0


@detector("source/sync-bound")
def sync_bound(trainings: Trainings) -> Iterator[Sighting]:
    """Every batch makes the host wait for the device."""
    always = _in_every_execution(trainings)

    def find(training: Training) -> Facts:
        for loop in _loops(training, always):
            if loop.is_worth_reporting:
                places = _places(loop)
                yield places[0], _fact(loop, places)

    yield from certain(trainings, find, among=_is_on_device)


@detector("source/printed-every-step")
def printed_every_step(trainings: Trainings) -> Iterator[Sighting]:
    """One value is read off the device in every step, for a line of a log."""
    always = _in_every_execution(trainings)

    def find(training: Training) -> Facts:
        for loop in _loops(training, always):
            shown = [(each.spot, _shown(training, each.spot)) for each in loop.waits]
            for spot, call in shown if not loop.is_worth_reporting else ():
                if call is not None:
                    what = ast.unparse(spot.node if not isinstance(spot.node, ast.FormattedValue) else call)
                    named = f"`{what}`" if len(what) <= _SHORT else "this line"
                    yield spot, f"{named} makes every batch wait for the device once"
                    break

    yield from certain(trainings, find, among=_is_on_device)


def _places(loop: _Loop) -> list[Spot]:
    """Where LOOP waits; for a helper that several lines call to read a value, those lines: as_number(loss)."""
    callers: dict[int, list[Spot]] = {}
    for each in loop.first:
        chain = each.spot.chain
        caller = Spot(*chain[-2]) if len(chain) > 1 else each.spot
        callers.setdefault(id(each.spot.node), []).append(caller)
    found: dict[tuple[str, int], Spot] = {}
    for each in loop.first:
        called = {one.key: one for one in callers[id(each.spot.node)]}
        for spot in called.values() if len(called) > 1 else (each.spot,):
            found.setdefault((spot.path, spot.line), spot)
    return [*found.values()]


def _fact(loop: _Loop, places: list[Spot]) -> str:
    if all(isinstance(each, events.LibraryCall) for each in loop.waits):
        return "`torch.cuda.synchronize()` makes every batch wait for the device, and no clock is read"
    *most, last = map(str, places)
    where = f"{', '.join(most)} and {last}" if most else last
    return f"every batch waits for the device in {where}"


def _is_on_device(training: Training) -> bool:
    """Whether it surely computes on an accelerator."""
    tensors = [
        *(each.loss for each in training.of(events.Backward)),
        *(each.tensor for each in training.of(events.Read)),
    ]
    return any(each.device == "cuda" for each in tensors) or any(_synchronizes(training))


def _synchronizes(training: Training) -> Iterator[events.LibraryCall]:
    return (each for each in training.of(events.LibraryCall) if each.name == _SYNCHRONIZE)


def _in_every_execution(trainings: Trainings) -> set[tuple[str, int, int]]:
    """The places where every execution waits, whatever the conditions that cannot be known come to."""
    counted = [each for each in trainings.runs if _is_on_device(each)]
    is_whole = any(each.executor.takes == "never" for each in counted)  # else the device depends on an option
    runs = [each for each in counted if each.executor.takes not in PARTLY] if is_whole else counted
    places = [{each.spot.key for each in _waits(run)} for run in runs]
    return set.intersection(*places) if places else set()


def _loops(training: Training, always: set[tuple[str, int, int]]) -> Iterable[_Loop]:
    """The loops that train, with what ALWAYS waits in them."""
    numbers = {id(each.loss) for each in training.of(events.Backward)}
    found: dict[int, _Loop] = {}
    for wait in _waits(training):
        if wait.spot.key not in always:
            continue
        loop = found.setdefault(training.batch_loop(wait), _Loop())
        loop.waits.append(wait)
        if isinstance(wait, events.LibraryCall):
            loop.first.append(wait)
            loop.copies += 1
            continue
        value = wait.tensor
        while value.same_as is not None:
            value = value.same_as
        if id(value) not in loop.values:
            loop.first.append(wait)
        is_number = wait.name in _NUMBERS or id(value) in numbers or bool(value.loss)
        is_guard = wait.name == "bool" and _is_guard(wait.spot.node)
        loop.values.add(id(value))
        loop.copies += not is_number or (wait.name == "bool" and isinstance(wait.spot.node, ast.Compare))
        loop.copies -= is_guard and not is_number
    return found.values()


def _waits(training: Training) -> list[events.Read | events.LibraryCall]:
    """Where the host waits in each iteration of a loop that trains, by their lines, those of this file first."""
    if not training.mentions(_CUDA):
        return []
    synchronized = list(_synchronizes(training))
    always = training.every_turn(synchronized)
    nodes = {id(each.spot.node) for each in always}
    if any(id(each.spot.node) not in nodes for each in synchronized if training.batch_loop(each)):
        return []  # now and then: the loop is a measurement, which must wait
    useless = [each for each in always if not _is_timed(training, each)]
    reads = training.every_turn(each for each in training.of(events.Read) if each.tensor.device == "cuda")
    if not reads and _has_timed_stream(training):
        useless = []
    found: list[events.Read | events.LibraryCall] = [*reads, *useless]
    own = training.script.text.path
    avoidable = (each for each in found if _is_avoidable(training, each))
    return sorted(avoidable, key=lambda each: (each.spot.path != own, each.spot.key))  # the same in each execution


def _has_timed_stream(training: Training) -> bool:
    """Whether a generator that may drive the loop reads a clock: for x in logger.log_every(loader)."""
    streams = (each.node for each in training.executor.visited.values() if each.is_generator)
    return any(_CLOCKS.search(name) for each in streams for name in names_in(each))


def _is_timed(training: Training, wait: events.Event) -> bool:
    """Whether a clock is read, or memory is, beside WAIT: in its loop, or in the helper that it stands in."""
    loop = training.executor.loop_nodes[training.batch_loop(wait)]
    code = loop if id(wait.spot.node) in nodes_in(loop) else training.code_around(wait.spot)
    return any(map(_CLOCKS.search, names_in(code)))


def _is_avoidable(training: Training, wait: events.Event) -> bool:
    """Whether the next iteration could begin without WAIT: not where it is an action of an environment, and not where
    all data are one batch, so that an epoch is a step.
    """
    ring = training.batch_loop(wait)
    loop = training.executor.loop_nodes[ring]
    if _is_seldom(training, wait.spot):
        return False
    acts = [
        each.lineno
        for each in ast.walk(loop)
        if isinstance(each, ast.Call) and dotted(each.func).endswith(".step") and "env" in dotted(each.func).lower()
    ]
    if acts and wait.spot.line <= max(acts):
        return False
    if isinstance(loop, ast.For | ast.AsyncFor) and not _COUNTS & names_in(loop.iter):
        return True
    is_fed = any(ring in {each for each, _ in one.loops} for one in training.of(events.Iteration))
    return is_fed or any(map(_FRESH.search, names_in(loop)))


def _is_seldom(training: Training, spot: Spot) -> bool:
    """Whether a condition on a remainder stands around SPOT: if step % args.interval == 0."""
    tests = (each for each in ast.walk(training.code_around(spot)) if isinstance(each, ast.If))
    seldom = (each for each in tests if any(isinstance(one, ast.Mod) for one in ast.walk(each.test)))
    return any(id(spot.node) in nodes_in(statement) for each in seldom for statement in each.body)


def _shown(training: Training, spot: Spot) -> ast.Call | None:
    """The call that shows people what is read at SPOT, and does nothing else: a print, a progress bar, a log."""
    said = (each.value for each in ast.walk(training.code_around(spot)) if isinstance(each, ast.Expr))
    calls = (each for each in said if isinstance(each, ast.Call) and dotted(each.func).rpartition(".")[2] in _SHOWN)
    return next((each for each in calls if id(spot.node) in nodes_in(each)), None)


def _is_guard(test: ast.AST) -> bool:
    """Whether TEST asks whether a value is a number, which is worth its wait."""
    return any(isinstance(each, ast.Attribute) and each.attr in _FINITE for each in ast.walk(test))
