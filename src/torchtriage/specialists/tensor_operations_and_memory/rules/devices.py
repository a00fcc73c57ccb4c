"""What an execution of the program shows about tensors that are made on the host for the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Spot
from torchtriage.examine.source.nodes import nodes_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import SIZED_FACTORIES
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

_RANDOM = names(trait="random")
_ELSEWHERE = re.compile(rb"set_default_tensor_type|set_default_device")
"""What makes factories make tensors on the device."""
_DEVICES = frozenset({"device", "dev", "gpu", "rank", "local_rank", "cuda_device", "gpu_id", "DEVICE", "Device"})
"""What a name is called that a device is surely given under."""
_CLASSES = {name.rpartition(".")[2] for name in symbols().tensor_classes}
_MADE = SIZED_FACTORIES | _CLASSES


@detector("source/created-then-moved")
def created_then_moved(trainings: Trainings) -> Iterator[Sighting]:
    """A tensor is made on the CPU again and again, and each time copied to the device."""

    def find(training: Training) -> Facts:
        if _is_set_elsewhere(training, is_program=trainings.is_program):
            return
        for copy in training.of(events.Copy):
            if copy.tensor.created in _MADE and _is_hot(training, copy) and not _is_kept(training, copy.spot):
                name, goal = copy.tensor.created, _goal(copy)
                # torch.FloatTensor(n) takes no device
                instead = f"torch.empty(…, device={goal})" if name in _CLASSES else f"device={goal}"
                yield (
                    copy.spot,
                    f"torch.{name}() fills memory of the host, and {_tail(copy.spot.node)}() copies it over for every "
                    "batch" + (f"; {instead} makes it where it is used" if goal else ""),
                    partial(_make_on_device, goal=goal),
                )

    yield from certain(trainings, find, where_reached=True)


def _is_set_elsewhere(training: Training, *, is_program: bool) -> bool:
    """Whether factories may make their tensors on the device: another file of a program says so for all of them, but
    in a library of models (transformers) any of hundreds of files mentions it.
    """
    here = _ELSEWHERE.search(training.script.text.data) is not None
    return here or (is_program and training.mentions(_ELSEWHERE))


def _is_hot(training: Training, copy: events.Copy) -> bool:
    """Whether its tensor is made anew, and COPY happens, in each iteration of a loop that trains, evaluates or samples,
    or whenever a model is called.
    """
    birth = copy.tensor.birth
    if birth is None or birth.is_read:  # what the host looks at belongs there: a mask that is drawn until it fits
        return False
    if birth.is_in_model and copy.is_in_forward:
        return True
    called = {each.loops[-1][0] for each in training.of(events.Forward) if each.loops}
    around = {loop for each in training.of(events.Backward) for loop, _ in each.loops[:-1]}  # samples of each epoch
    endless = {loop for loop in called - around if training.executor.endless.get(loop)}
    alike = [each for each in training.of(events.Copy) if each.spot.node is copy.spot.node]
    turns = {turn for each in alike for turn in each.loops}
    mine = [turn for made, turn in zip(birth.loops, copy.loops, strict=False) if made == turn]
    often = {loop for loop, _ in mine if sum(one == loop for one, _ in turns) > 1}
    # in a loop that trains on no loader they stand for the data: torch.randint(0, words, size) of a benchmark
    is_data = copy.tensor.created in _RANDOM and id(copy) not in training.loaders
    return bool(often & (endless - training.batch_loops if is_data else endless | training.batch_loops))


def _is_kept(training: Training, spot: Spot) -> bool:
    """Whether the call at SPOT only fills what is kept: if self.mask is None: self.mask = …, or behind a cache."""
    around = training.definitions_around(spot)
    if not around:
        return False
    if any("cache" in ast.unparse(each) for each in around[-1].decorator_list):
        return True
    guarded = (each for each in ast.walk(around[-1]) if isinstance(each, ast.If | ast.ExceptHandler))
    mine = (each for each in guarded if id(spot.node) in nodes_in(each))
    assigned = (each for one in mine for each in ast.walk(one) if isinstance(each, ast.Assign))
    return any(isinstance(to, ast.Attribute | ast.Subscript) for each in assigned for to in each.targets)


def _tail(node: ast.AST) -> str:
    called = node.func if isinstance(node, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else "a call"


def _goal(copy: events.Copy) -> str:
    """The code of the device that COPY goes to, and of the format, where it takes both from a tensor."""
    node = copy.spot.node
    if not isinstance(node, ast.Call) or _tail(node) == "type":
        return ""
    given = [*node.args[:1], *(each.value for each in node.keywords if each.arg in ("device", "other"))]
    goal = ast.unparse(given[0]) if given else '"cuda"' if _tail(node) == "cuda" else ""
    if copy.is_like:
        return f"{goal}.device, dtype={goal}.dtype" if isinstance(given[0], ast.Name | ast.Attribute) else ""
    return goal


def _make_on_device(script: Script, node: ast.AST, *, goal: str) -> tuple[Edit, ...]:
    """torch.zeros(n).to(device) → torch.zeros(n, device=device)"""
    made = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if not isinstance(node, ast.Call) or not isinstance(made, ast.Call) or node.lineno != node.end_lineno:
        return ()
    head, _, last = script.names.resolve(made.func, script.facts.scopes[0]).rpartition(".")
    is_settled = "dtype=" in goal and any(each.arg == "dtype" for each in made.keywords)  # .to(x) would change it again
    is_device = "dtype=" in goal or goal[:1] in ("'", '"') or goal.rpartition(".")[2] in _DEVICES  # not .to(batch.mask)
    if not goal or is_settled or not is_device:
        return ()
    is_alone = len(node.args) + len(node.keywords) == 1 or (_tail(node) == "cuda" and not node.args + node.keywords)
    if head != "torch" or last not in SIZED_FACTORIES - _RANDOM or not is_alone or _tail(node) not in ("to", "cuda"):
        return ()
    text = script.source(made)
    given = text[:-1].rstrip()
    comma = " " if given.endswith(",") else ", " if made.args or made.keywords else ""
    return script.replaced("on-the-device", node, f"{given}{comma}device={goal})") if text[-1:] == ")" else ()
