"""What executions show a module to hold without knowing it, and layers that are one."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import GraphNode, Parameter, PlainAttribute
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Object, Spot, Value, is_module
from torchtriage.examine.source.nodes import names_in, nodes_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import CASTS
from torchtriage.examine.source.torch_api.symbols import symbols


@detector("source/unregistered-modules")
def unregistered_modules(trainings: Trainings) -> Iterator[Sighting]:
    """Layers or parameters stand in a plain list, tuple or dict: the module does not know them."""

    def find(training: Training) -> Facts:
        for plain in training.of(events.PlainContainer):
            if plain.owner.values.get(plain.name) is not plain.held:  # made for one of two settings, and replaced
                continue
            if not training.executor.is_finished and not _is_used(training, plain.owner):  # it may be in the making
                continue
            lost = _unregistered(training, plain)
            is_hidden = isinstance(plain.held, list) and len(plain.held) == 1  # [teacher]: left out on purpose
            if lost and not is_hidden:
                yield (
                    plain.spot,
                    f"`self.{plain.name}` is a plain container: what it holds is missing from parameters(), to() and "
                    "state_dict()",
                )

    yield from certain(trainings, find, where_reached=True)


def _is_used(training: Training, module: Object) -> bool:
    """Whether MODULE was called: it was made to its end by then."""
    return any(module in each.called for each in training.of(events.Forward))


def _unregistered(training: Training, plain: events.PlainContainer) -> list[Value]:
    """Of what PLAIN holds the layers with a state, and the parameters, that its owner has made and does not know."""
    library, owner = training.executor, plain.owner
    contents = [each for each in plain.contents if is_module(each) or isinstance(each, Parameter)]
    if not contents:
        return []
    known = {id(each) for each in (*library.modules(owner), *library.parameters(owner))}
    if isinstance(plain.held, dict) and (any(id(each) in known for each in contents) or _is_menu(training, plain)):
        return []  # {"resnet18": …, "resnet50": …}: the one that is chosen, or its layers, are registered
    born = owner.state.get("born", 0)
    return [
        each
        for each in contents
        if id(each) not in known
        and not each.has_escaped
        and (
            each.owner is None
            if isinstance(each, Parameter)
            else each.state.get("born", -1) > born and (library.parameters(each) or training.has_modes(each))
        )
    ]


def _is_menu(training: Training, plain: events.PlainContainer) -> bool:
    """Whether PLAIN holds whole models of packages of which the forward pass of its owner uses none itself.

    SimCLR's resnet_dict: the layers of the one that is chosen become an nn.Sequential.
    """
    called = {id(each) for each in training.executor.called}
    is_of_packages = all(is_module(each) and training.executor.is_opaque(each) for each in plain.contents)
    return is_of_packages and id(plain.owner) in called and not any(id(each) in called for each in plain.contents)


@detector("source/unregistered-tensor")
def unregistered_tensor(trainings: Trainings) -> Iterator[Sighting]:
    """A forward pass computes with a tensor that is a plain attribute: moving the model leaves it behind."""
    script = trainings.script
    if any(script.calls(*symbols().device_defaults)):
        return

    def find(training: Training) -> Facts:
        moved = any(each.state.get("is_moved") for each in training.executor.called)
        for use in training.of(events.AttributeUse) if moved else ():
            held = use.tensor.attribute
            if held is not None and not held.is_cared_for and not _is_set_elsewhere(training, held):
                lost = "no optimizer receives it" if held.is_learned else "state_dict() does not hold it"
                fact = f"`self.{held.name}` is a plain tensor: model.to(device) leaves it where it is, and {lost}"
                fact += f"; {use.spot} computes with it"
                yield held.spot, fact, partial(_register_buffer, held=held)

    yield from certain(trainings, find)


def _is_set_elsewhere(training: Training, held: PlainAttribute) -> bool:
    """Whether another method, or code outside of the module, assigns the attribute: model.prior = model.prior.to(…).

    One that asks for a gradient may be given to an optimizer there: Adam([model.latent]).
    """
    around = training.definitions_around(held.spot)
    cls = next((each for each in reversed(around) if isinstance(each, ast.ClassDef)), None)
    here = frozenset().union(*map(nodes_in, around[-1:]))
    inside = nodes_in(cls) if cls is not None else here
    for node in itertools.chain(ast.walk(training.script.tree), ast.walk(cls) if cls is not None else ()):
        if isinstance(node, ast.Attribute) and node.attr == held.name and id(node) not in here:
            is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
            is_of_another = is_own and id(node) not in inside
            if not is_of_another and (isinstance(node.ctx, ast.Store) or (held.is_learned and not is_own)):
                return True
    return False


def _register_buffer(script: Script, node: ast.AST, *, held: PlainAttribute) -> tuple[Edit, ...]:
    """self.mask = … → self.register_buffer("mask", …), where that is a statement on one line."""
    for each in ast.walk(script.tree) if not held.is_learned else ():
        if not isinstance(each, ast.Assign) or len(each.targets) != 1 or each.targets[0] is not node:
            continue
        if isinstance(node, ast.Attribute) and each.lineno == each.end_lineno:
            owner, value = script.source(node.value), script.source(each.value)
            return script.replaced("buffer", each, f'{owner}.register_buffer("{held.name}", {value})')
    return ()


@detector("source/layers-shared-by-repetition")
def layers_shared_by_repetition(trainings: Trainings) -> Iterator[Sighting]:
    """A list of layers holds one layer several times: its parameters are shared."""

    def find(training: Training) -> Facts:
        several = {
            id(each)
            for made in training.of(events.ModuleList)
            for each, number in Counter(item for item in made.items if isinstance(item, Object)).items()
            if number > 1
        }
        for repeated in training.of(events.RepeatedLayer):
            is_held = repeated.is_registered or id(repeated.layer) in several
            if is_held and training.executor.parameters(repeated.layer) and not _is_said(training, repeated.spot):
                around = training.definitions_around(repeated.spot)
                is_in_class = bool(around) and isinstance(around[-1], ast.ClassDef)
                fact = "every element is the same layer: one set of weights, trained as one"
                yield (repeated.spot, fact) if is_in_class else (repeated.spot, fact, _make_each)

    yield from certain(trainings, find)


_SHARES = re.compile(r"shar|tied|tie_|same weight|recurr|recurs|universal", re.IGNORECASE)
"""How code is called, or what comments say, where layers are shared on purpose: ALBERT, universal transformers."""


def _is_said(training: Training, spot: Spot) -> bool:
    """Whether the code around SPOT says that it shares: by its name, or by a comment right above."""
    text, first = training.script.text, spot.line
    while first > 1 and text.line(first - 1).lstrip().startswith("#"):
        first -= 1
    near = " ".join(text.line(number) for number in range(first, spot.line + 1))
    near = near.replace("layers-shared-by-repetition", "")  # a comment about this fault says nothing about the code
    return _SHARES.search(" ".join((near, *(each.name for each in training.definitions_around(spot)[-2:])))) is not None


def _make_each(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """[Layer(n)] * depth → [Layer(n) for _ in range(depth)], where the layer is made on the spot."""
    if not isinstance(node, ast.BinOp) or node.lineno != node.end_lineno:
        return ()
    match node.left, node.right:
        case (ast.List(elts=[ast.Call() as made]), count) | (count, ast.List(elts=[ast.Call() as made])):
            pass
        case _:
            return ()
    if any(isinstance(each, ast.Name) and each.id == "_" for each in ast.walk(node)):
        return ()
    code = f"[{script.source(made)} for _ in range({script.source(count)})]"
    return script.replaced("one-each", node, code)


@detector("source/parameter-then-moved")
def parameter_then_moved(trainings: Trainings) -> Iterator[Sighting]:
    """What a module keeps is the result of an operation on a parameter, and no parameter."""

    def find(training: Training) -> Facts:
        for replaced in training.of(events.ParameterReplaced):
            if _asks_device(training, replaced.spot) or training.mentions(_PARAMETRIZED):
                continue
            yield replaced.spot, f"`self.{replaced.name}` is a Parameter: assigning a plain tensor raises TypeError"
        for kept in training.of(events.Kept):
            owner = kept.owner
            is_last = isinstance(owner, Object) and owner.values.get(kept.name) is kept.tensor
            if is_last and owner.kind == "module" and not kept.loops and kept.tensor.graph:
                own = set(training.executor.parameters(owner))
                starts = set[GraphNode]().union(*(each.base.operations for each in own if each.base is not None))
                is_start = kept.tensor.grad_fn in starts  # of what is trained: Parameter(start[i])
                if not is_start and all(each.owner is None and each not in own for each in kept.tensor.graph):
                    fact = f"`self.{kept.name}` is computed of a parameter: parameters() does not have it"
                    yield kept.spot, fact, _move_first

    yield from certain(trainings, find, where_reached=True)


_PARAMETRIZED = re.compile(rb"register_parametrization")
"""What makes parameters properties, which take what is assigned."""


def _asks_device(training: Training, spot: Spot) -> bool:
    """Whether SPOT is come to where devices differ: a parameter has gone with its model, and a plain tensor has not."""
    tests = (each for each in ast.walk(training.code_around(spot)) if isinstance(each, ast.If))
    mine = (each.test for each in tests if id(spot.node) in nodes_in(each))
    return any("device" in names_in(each) for each in mine)


def _move_first(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """nn.Parameter(tensor).to(device) → nn.Parameter(tensor.to(device)), where nothing but moves stands behind it."""
    assigned = (each for each in ast.walk(script.tree) if isinstance(each, ast.Assign))
    value = next((each.value for each in assigned if each.targets[0] is node), None)
    made = _unmoved(value) if value is not None else None
    if value is None or made is None or made is value or len(made.args) != 1:
        return ()
    is_parameter = ast.unparse(made.func).endswith("Parameter")
    if not is_parameter or not isinstance(made.args[0], ast.Call | ast.Name | ast.Attribute | ast.Subscript):
        return ()
    (_, first), (_, middle), (_, last) = (script.text.span(each) for each in (made.args[0], made, value))
    data = script.text.data
    return script.change("move-first", first, last, (data[middle:last] + data[first:middle]).decode(errors="replace"))


def _unmoved(node: ast.expr) -> ast.Call | None:
    """The call behind which NODE only moves and casts."""
    while isinstance(node, ast.Call):
        called = node.func
        if not isinstance(called, ast.Attribute) or called.attr not in CASTS:
            return node
        node = called.value
    return None
