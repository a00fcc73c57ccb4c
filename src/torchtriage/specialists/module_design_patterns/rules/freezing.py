"""What executions show of attempts to freeze that freeze nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import OPAQUE, Object, Unknown, is_module
from torchtriage.examine.source.script import Script


@detector("source/requires-grad-typo")
def requires_grad_typo(trainings: Trainings) -> Iterator[Sighting]:
    """An attribute is set that no parameter has: nothing is frozen."""
    script = trainings.script

    def find(training: Training) -> Facts:
        for setting in training.of(events.Setting):
            name, node = setting.name, setting.spot.node
            target = ast.unparse(node.value) if isinstance(node, ast.Attribute) else ""
            if setting.owner is None or not target or _is_option(training, setting):
                continue
            if name == "requires_grad_":
                fact = f"requires_grad_ is a method: this hides it from `{target}`, and nothing changes"
                yield setting.spot, fact, _ask
            elif name == "requires_grad" and _is_whole(training, setting) and not _is_read(script, target, name):
                fact = f"`{target}` is a module: setting its requires_grad leaves that of its parameters as it was"
                yield setting.spot, fact, _ask
            elif is_typo(name) and not _is_read_anywhere(script, name):
                fact = f"`{target}.{name}` is an attribute that torch does not know (requires_grad is): nothing changes"
                yield setting.spot, fact, _rename

    yield from certain(trainings, find, where_reached=True)


def _is_whole(training: Training, setting: events.Setting) -> bool:
    """Whether what gets the attribute is a module, and no tensor."""
    owner, node = setting.owner, setting.spot.node
    if isinstance(owner, Object) and owner.made != OPAQUE:
        return is_module(owner)
    around = " ".join(ast.unparse(each) for each in training.definitions_around(setting.spot)[-1:])
    if re.search(r"isinstance\(.*Parameter", around) is not None:  # it asks what is a parameter
        return False
    match node:
        case ast.Attribute(value=ast.Attribute(attr=word)):
            return word in _PARTS or (isinstance(owner, Unknown) and owner.is_called)
        case ast.Attribute(value=ast.Name(id=word)):
            return isinstance(owner, Object) or (isinstance(owner, Unknown) and (owner.is_called or word in _WHOLE))
    return isinstance(owner, Object)


def _is_option(training: Training, setting: events.Setting) -> bool:
    """Whether a constructor keeps what it was given under the same name: self.requires_grad = requires_grad."""
    node, names = setting.spot.node, [each.name for each in training.definitions_around(setting.spot)]
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return is_own and names[-1:] == ["__init__"]


_WHOLE = frozenset({"net", "model", "module", "network", "backbone", "block"})
"""What people call one whole model: def set_requires_grad(nets, flag): for net in nets: net.requires_grad = flag."""
_PARTS = frozenset(
    {"encoder", "decoder", "backbone", "embeddings", "patch_embed", "stem", "head", "visual", "vision_model", "fc"}
    | {"classifier", "features", "layer1", "layer2", "layer3", "layer4", "conv1", "avgpool", "bn1"}
)
"""What the models of torchvision, transformers and the like call their modules."""
_TYPOS = frozenset(
    {"require_grad", "requires_grads", "require_grads", "required_grad", "requires_gradient", "require_gradient"}
    | {"requires_gard", "requries_grad", "reqires_grad", "requiers_grad", "require_grad_", "requires_grads_"}
)
_OTHERS = frozenset({"requires_grad", "requires_grad_", "retains_grad", "retain_grad", "register_grad"})
"""Attributes of tensors that look like it."""
_ALIKE = 0.82
"""How much a misspelling has in common with the word."""


@cache
def is_typo(word: str) -> bool:
    """Whether WORD is requires_grad misspelt."""
    if word in _TYPOS:
        return True
    if "gr" not in word.lower() or word[:2].lower() != "re" or word in _OTHERS:
        return False
    return SequenceMatcher(None, word.lower(), "requires_grad").ratio() > _ALIKE


def _is_read(script: Script, target: str, word: str) -> bool:
    """Whether the module keeps a flag of that name on purpose: some class of the file reads self.requires_grad."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == word
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node.value) in ("self", target)
        for node in ast.walk(script.tree)
    )


def _is_read_anywhere(script: Script, word: str) -> bool:
    """Whether WORD is an attribute, or the name of one, that the file itself looks at."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr == word and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Constant) and node.value == word)
        for node in ast.walk(script.tree)
    )


def _rename(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """p.require_grad = False → p.requires_grad = False."""
    if not isinstance(node, ast.Attribute):
        return ()
    _, last = script.text.span(node)
    return script.change("say-requires-grad", last - len(node.attr.encode()), last, "requires_grad")


def _ask(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """layer.requires_grad = False → layer.requires_grad_(False)."""
    for each in ast.walk(script.tree):
        if isinstance(each, ast.Assign) and each.targets == [node] and isinstance(node, ast.Attribute):
            (_, behind), (_, last) = script.text.span(node), script.text.span(each)
            code = f"requires_grad_({script.source(each.value)})"
            return script.change("call-requires-grad", behind - len(node.attr.encode()), last, code)
    return ()
