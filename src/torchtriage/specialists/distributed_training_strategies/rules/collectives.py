"""Collectives that some ranks alone come to, and asynchronous ones that nothing waits for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.ranks import Guard
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Spot
from torchtriage.examine.source.nodes import other_branches


@detector("source/collective-on-some-ranks")
def collective_on_some_ranks(trainings: Trainings) -> Iterator[Sighting]:
    """Only some ranks reach a collective: they wait for the others until the time runs out."""
    every = [each for run in (*trainings.runs, *trainings.others) for each in run.executor.events]
    met = [each for each in every if isinstance(each, events.Collective | events.UnseenCall)]

    def find(training: Training) -> Facts:
        for collective in training.of(events.Collective):
            for guard in collective.guards if collective.is_of_all else ():
                is_met = any(_answers(each, collective, guard) for each in met) or _has_partner(training, collective)
                if guard.certainty == "rank" and not is_met:
                    called = collective.spot.chain[guard.depth :] or (collective.spot.chain[-1],)
                    is_passed_on = len(called) > 1 and _is_parameter(training, Spot(*called[0]))
                    yield (
                        Spot(*called[is_passed_on]),
                        f"the condition of line {guard.line} keeps the other ranks away from {collective.name}, "
                        "which every rank must reach",
                    )

    yield from certain(trainings, find, where_reached=True)


def _has_partner(training: Training, collective: events.Collective) -> bool:
    """Whether the function of COLLECTIVE calls the same one under another condition, and no execution may have come to
    both: `if not is_leader and world > 1: barrier()`, and below it `if is_leader and world > 1`; or in its else.
    """
    tests = (each for each in ast.walk(training.code_around(collective.spot)) if isinstance(each, ast.If))
    others = (one for each in tests for one in other_branches(each, collective.spot.node))
    return any(
        isinstance(node, ast.Attribute) and node.attr == collective.name for each in others for node in ast.walk(each)
    )


def _answers(other: events.Event, collective: events.Collective, guard: Guard) -> bool:
    """Whether OTHER may be what the ranks come to that GUARD keeps away from COLLECTIVE."""
    if any(each.line == guard.line and each.way is not guard.way for each in other.guards):
        return True  # unknown code there may hold the same collective
    if not isinstance(other, events.Collective) or other.name != collective.name:
        return False
    return any(each.line != guard.line for each in other.guards)


def _is_parameter(training: Training, spot: Spot) -> bool:
    """Whether what is called at SPOT is a parameter of a function around it: a decorator calls what it decorates."""
    called = spot.node.func if isinstance(spot.node, ast.Call) else None
    around = [each for each in training.definitions_around(spot) if isinstance(each, ast.FunctionDef)]
    return isinstance(called, ast.Name) and any(called.id in map(_name, ast.walk(each.args)) for each in around)


def _name(node: ast.AST) -> str:
    return node.arg if isinstance(node, ast.arg) else ""


def _comes_to_barrier(training: Training, made: events.Made) -> bool:
    """Whether a barrier of all ranks comes after what is MADE, which holds up all that was sent before."""
    later = (each for each in training.events_after(made) if isinstance(each, events.Collective))
    return any(each.name.endswith("barrier") and each.is_of_all for each in later)


@detector("source/handle-not-waited")
def handle_not_waited(trainings: Trainings) -> Iterator[Sighting]:
    """What an asynchronous collective or transfer gives is never waited for."""

    def find(training: Training) -> Facts:
        waited = {id(each.handle) for each in training.of(events.Handle)}
        for made in training.of(events.Made):
            handle = made.made
            is_open = handle.kind == "handle" and not handle.has_escaped and id(handle) not in waited
            if is_open and "wait" not in training.blind and not _comes_to_barrier(training, made):
                yield made.spot, f"nothing waits for {handle.made}: its tensor may be read before it has come"

    yield from certain(trainings, find, where_reached=True)
