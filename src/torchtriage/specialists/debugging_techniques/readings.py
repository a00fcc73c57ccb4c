"""What a run's record says about numbers that are not finite and gradients that go nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.record import RankRecord

RUNNING = 3  # steps in a row on carried gradients: one or two may be a deliberate trick
ENOUGH_BACKWARDS = 10
LONG = 1000  # backward passes with no step that are too many even for a job that was killed


@detector("run/non-finite-origin")
def non_finite_origin(record: RankRecord) -> Iterator[Sighting]:
    """The first loss or gradient that is not finite, and the operation that made it."""
    _anything_learned(record)
    for event in record.all("non-finite"):
        step = event.get("at", event["step"])
        place = Place(
            path=event.get("path") or None,
            line=event.get("line") or None,
            rank=record.rank,
            step=step,
            module=None if event["stage"] == "input" else event.get("module"),
        )
        yield Sighting(place, f"{_seen(event)} is not finite at step {step}: {_STORIES[event['stage']](event)}")


@detector("run/gradients-not-zeroed")
def gradients_not_zeroed(record: RankRecord) -> Iterator[Sighting]:
    """Gradients that a step has used are added to by the next backward, step after step."""
    _anything_learned(record)
    longest: dict[str, dict[str, Any]] = {}
    for event in record.all("carried"):
        if event["running"] >= RUNNING:
            longest[event["optimizer"]] = event
    for name, event in longest.items():
        place = Place(path=event["path"] or None, line=event["line"] or None, rank=record.rank, step=event["step"])
        running = event["running"]
        fact = f"the gradients of {name} were not zeroed over {running} steps in a row: each backward added to the last"
        yield Sighting(place, fact, float(running), "steps")


@detector("run/step-missing")
def step_missing(record: RankRecord) -> Iterator[Sighting]:
    """An optimizer whose parameters get gradients, and that never steps."""
    _anything_learned(record)
    ledgers: dict[str, dict[str, Any]] = {}
    for event in record.all("updates"):
        ledgers[event["built"]] = event
    if not any(ledger["steps"] for ledger in ledgers.values()) and any(each.get("beside") for each in ledgers.values()):
        raise CannotSee(
            "no optimizer stepped, and an input got gradients too: an attack or a saliency map, or a forgotten step",
            "Call the optimizer's step() after backward() if the job is meant to train.",
        )
    for built, ledger in ledgers.items():
        enough = ENOUGH_BACKWARDS if ledger.get("last") else LONG
        if ledger["steps"] or ledger["moved"] or ledger["backwards"] < enough:
            continue
        place = Place(path=ledger["path"] or None, line=ledger["line"] or None, rank=record.rank)
        count = ledger["backwards"]
        fact = f"{count} backward passes filled the gradients of {ledger['optimizer']} ({built}), which never stepped"
        yield Sighting(place, fact, float(count), "backward passes")


def _anything_learned(record: RankRecord) -> None:
    """A job that never runs backward has nothing to show here, and that is no health."""
    if not any(step["backward"] for step in record.all("step")) and not record.all("updates"):
        raise CannotSee(
            "no backward pass was seen", "Run the job until it trains: ten steps are enough for most readings."
        )


def _seen(event: dict[str, Any]) -> str:
    if event["seen"] == "gradient":
        return f"the gradient of {event['bad']} of {event['of']} parameters (nearest to the loss: {event['nearest']})"
    return "the loss" if event["seen"] == "loss" else "the loss or a gradient"


def _forward(event: dict[str, Any]) -> str:
    fact = f"{_op(event)} gave {event['value']} in {_module(event)}, from inputs and parameters that were finite"
    if "autocast" in event:
        fact += f"; without autocast ({event['autocast']}) it {'gives the same' if event['persists'] else 'is finite'}"
    return fact


def _backward(event: dict[str, Any]) -> str:
    return f"the derivative of {_op(event)} in {_module(event)} is not finite, though its forward values are"


def _parameter(event: dict[str, Any]) -> str:
    return f"the parameter {event['parameter']} was not finite before this step; {_module(event)} met it first"


def _input(event: dict[str, Any]) -> str:
    return f"the input of {event['root']} was not finite already: the batch itself, or what the script did to it"


def _loss(event: dict[str, Any]) -> str:
    chain = ", of ".join(event["chain"]) or "an operation without a graph"
    return f"every module's output is finite; it arises in the loss computed from it ({chain})"


def _unknown(event: dict[str, Any]) -> str:
    return f"the operation could not be traced ({event['why']})"


_STORIES = {
    "forward": _forward,
    "backward": _backward,
    "parameter": _parameter,
    "input": _input,
    "loss": _loss,
    "unknown": _unknown,
}


def _op(event: dict[str, Any]) -> str:
    return str(event["op"])


def _module(event: dict[str, Any]) -> str:
    module, root = event["module"], event["root"]
    return str(root) if module == root else f"{module} of {root}"
