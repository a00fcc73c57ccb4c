"""Attempts to freeze that freeze nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.roles import gives_model
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.module_design_patterns.rules.state import is_module

_TYPOS = frozenset(
    {"require_grad", "requires_grads", "require_grads", "required_grad", "requires_gradient", "require_gradient"}
    | {"requires_gard", "requries_grad", "reqires_grad", "requiers_grad", "require_grad_", "requires_grads_"}
)
# Attributes of tensors that look like it, and how much a misspelling has in common with the word.
_OTHERS = frozenset({"requires_grad", "requires_grad_", "retains_grad", "retain_grad", "register_grad"})
_ALIKE = 0.82
_MODULES = symbols().submodules
# What people call one whole model.
_NAMED = frozenset({"net", "model", "module", "network", "backbone", "block"})
_CONTAINERS = symbols().containers - {"torch.nn.ModuleDict"}
# Parts of the models of torchvision and its like: lists of modules, and modules.
_LISTED = frozenset({"blocks", "layers", "layer", "stages", "features", "h", "block", "encoder_layers"})
_PARTS = frozenset(
    {
        "encoder",
        "decoder",
        "backbone",
        "embeddings",
        "patch_embed",
        "stem",
        "head",
        "visual",
        "vision_model",
        "fc",
        "classifier",
        "features",
        "layer1",
        "layer2",
        "layer3",
        "layer4",
        "conv1",
        "avgpool",
        "bn1",
    }
)


@detector("source/requires-grad-typo")
def requires_grad_typo(script: Script) -> Iterator[Sighting]:
    """An attribute is set that no parameter has: nothing is frozen."""
    if not any(word[:2].lower() == "re" and "gr" in word.lower() for word in script.aside):
        return
    for scope in script.facts.scopes:
        for name, stores in scope.stores.items():
            owner, dot, word = name.rpartition(".")
            if dot and (word in ("requires_grad", "requires_grad_") or is_typo(word)):
                for store in stores:
                    yield from _set(script, store, owner, word)
    for call in script.calls("setattr"):
        match call.node.args:
            case [_, ast.Constant(value=str(name)), ast.Constant(value=bool())] if is_typo(name):
                fact = f"{name} is an attribute that torch does not know (requires_grad is): nothing changes"
                yield script.seen(call.node, fact)


@cache
def is_typo(word: str) -> bool:
    """Whether WORD is requires_grad misspelt."""
    if word in _TYPOS:
        return True
    if "gr" not in word.lower() or word[:2].lower() != "re" or word in _OTHERS:
        return False
    return SequenceMatcher(None, word.lower(), "requires_grad").ratio() > _ALIKE


def _set(script: Script, store: Store, owner: str, word: str) -> Iterator[Sighting]:
    target = _target(store, word)
    if target is None or not (_is_flag(store.value) or _is_given_flag(store)):
        return
    if _is_option(store, owner, word) or _is_told_apart(store):
        return
    if word == "requires_grad_":
        fact = f"requires_grad_ is a method: this assignment hides it from {owner} and changes nothing"
        yield script.seen(store.node, fact, _called(script, store, target))
    elif is_typo(word) and not _is_read_anywhere(script, word):
        fact = f"{owner}.{word} is an attribute that torch does not know (requires_grad is): nothing changes"
        yield script.seen(store.node, fact, _renamed(script, target))
    elif word == "requires_grad" and _is_frozen_whole(script, target.value, store) and not _is_read(script, store):
        fact = f"{owner} is a module: setting its requires_grad leaves that of its parameters as it was"
        yield script.seen(store.node, fact, _called(script, store, target))


def _is_option(store: Store, owner: str, word: str) -> bool:
    """Whether a constructor keeps what it was given under the same name: self.requires_grad = requires_grad."""
    return owner == store.scope.receiver and store.scope.name == "__init__" and dotted(store.value) == word


def _is_told_apart(store: Store) -> bool:
    """Whether the function asks what is a parameter before it sets anything: isinstance(m, nn.Parameter)."""
    tests = [each.test for each in ast.walk(store.scope.node) if isinstance(each, ast.If | ast.IfExp)]
    asked = (node for test in tests for node in ast.walk(test) if isinstance(node, ast.Call) and len(node.args) == 2)
    return any(dotted(each.func) == "isinstance" and dotted(each.args[1]).endswith("Parameter") for each in asked)


def _target(store: Store, word: str) -> ast.Attribute | None:
    targets = store.node.targets if isinstance(store.node, ast.Assign) else []
    own = (each for each in targets if isinstance(each, ast.Attribute) and each.attr == word)
    return next((each for each in own if f"{dotted(each.value) or '?'}.{word}" == store.name), None)


def _is_flag(value: ast.expr | None) -> bool:
    truth = isinstance(value, ast.Constant) and isinstance(value.value, bool)
    return truth or isinstance(value, ast.Compare) or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not))


def _is_given_flag(store: Store) -> bool:
    """Whether the value is a parameter of the function: def set_requires_grad(nets, flag)."""
    value = store.value
    given = store.scope.stores.get(value.id, ()) if isinstance(value, ast.Name) else ()
    return bool(given) and all(each.how == "parameter" for each in given)


def _is_frozen_whole(script: Script, node: ast.expr, at: Store) -> bool:
    """Whether NODE is a module where its flag is set AT: by the loop that gives it, or by itself."""
    if isinstance(node, ast.Name) and _is_turned_through(script, node, at):
        return True
    return _is_module(script, node, at.scope)


def _is_module(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is a module and no parameter: by how it was made, by how it is used, by its annotation."""
    if is_module(script, node, scope) or _is_used_as_module(script, dotted(node)):
        return True
    if isinstance(node, ast.Name) and node.id == scope.receiver and scope.host is not None:
        return "torch.nn.Module" in script.trace.bases(scope.host)
    if isinstance(node, ast.Attribute) and _is_part(script, node, scope):
        return True
    parts = script.roles.parts(node, scope)
    return bool(parts) and all(part.role == "model" and part.name != "torch.nn.Parameter" for part in parts)


def _is_part(script: Script, node: ast.Attribute, scope: Scope) -> bool:
    """Whether NODE is a layer of a model of this file, or one of the known parts of torchvision's."""
    own = script.trace.instance(node.value, scope)
    if own is not None:
        stores = [store for store in own.attributes.get(node.attr, ()) if store.how == "assign"]
        return bool(stores) and all(is_module(script, store.value, store.scope) for store in stores)
    origins = script.trace.origins(node.value, scope)
    made = [script.names.resolve(each.call.func, each.scope) for each in origins if each.call is not None]
    return node.attr in _PARTS and bool(made) and all(gives_model(each) for each in made)


def _is_used_as_module(script: Script, name: str) -> bool:
    """Whether the file calls NAME, or asks it for its parameters: no tensor can do either."""
    if not name or name in ("self", "cls"):
        return False
    called = script.calls(name.rpartition(".")[2])
    asked = script.calls("parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval")
    return any(dotted(call.node.func) == name for call in called) or any(dotted(c.receiver) == name for c in asked)


def _is_turned_through(script: Script, node: ast.Name, at: Store) -> bool:
    """Whether NODE is what a loop over modules gives: for layer in model.children()."""
    stores = reaching([each for each in script.names.stores(node.id, at.scope) if each.scope is at.scope], at)
    if node.id in _NAMED and all(_is_given_on(store) for store in stores):
        return bool(stores)
    if any(store.how == "parameter" for store in stores):
        return len(stores) == 1 and _is_applied(script, stores[0].scope)
    return bool(stores) and all(_gives_modules(script, store) for store in stores)


def _is_given_on(store: Store) -> bool:
    """Whether STORE is a parameter of a function, or what a loop takes from something else than parameters()."""
    if store.how == "parameter":
        return store.value is None
    return store.how == "element" and store.value is not None and "param" not in ast.unparse(store.value).lower()


def _is_applied(script: Script, function: Scope) -> bool:
    """Whether FUNCTION is what model.apply(function) shows every module."""
    return any(
        script.written.function(argument, call.scope) is function
        for call in script.calls("apply")
        for argument in call.arguments
    )


def _is_listed(script: Script, value: ast.Attribute, store: Store) -> bool:
    """Whether VALUE is the list of blocks in a model: vit.blocks, bert.encoder.layer."""
    inner: ast.expr = value
    while value.attr in _LISTED and isinstance(inner, ast.Attribute):
        inner = inner.value
        if script.roles.plays(inner, store.scope, "model"):
            return True
    return False


def _gives_modules(script: Script, store: Store) -> bool:
    value, pairs = store.value, False
    if store.how != "element":
        return False
    while True:
        match value:
            case ast.Call(func=ast.Name(id="list" | "tuple" | "reversed" | "enumerate" as word), args=[inner, *_]):
                value, pairs = inner, pairs or word == "enumerate"
            case ast.Subscript(value=inner):
                value = inner
            case _:
                break
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr not in _MODULES:
        if isinstance(value, ast.Attribute) and not pairs and store.index is None and _is_listed(script, value, store):
            return True
        if isinstance(value, ast.List | ast.Tuple):
            return (
                bool(value.elts) and store.index is None and all(_is_module(script, e, store.scope) for e in value.elts)
            )
        made = script.roles.made(value, store.scope, "model")
        if any(part.name not in _CONTAINERS for part in made):
            return False
        return bool(made) or (isinstance(value, ast.Attribute) and _is_part(script, value, store.scope))
    return store.index == 1 or not (pairs or value.func.attr.startswith("named_"))


def _is_read(script: Script, store: Store) -> bool:
    """Whether the module keeps a flag of that name on purpose: some class of this file reads self.requires_grad."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "requires_grad"
        and isinstance(node.ctx, ast.Load)
        and dotted(node.value) in ("self", dotted(getattr(_target(store, "requires_grad"), "value", None)))
        for node in ast.walk(script.facts.scopes[0].node)
    )


def _is_read_anywhere(script: Script, word: str) -> bool:
    """Whether WORD is an attribute, or the name of one, that this file itself looks at."""
    for node in ast.walk(script.facts.scopes[0].node):
        if isinstance(node, ast.Attribute) and node.attr == word and isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Constant) and node.value == word:
            return True
    return False


def _renamed(script: Script, target: ast.Attribute) -> tuple[Edit, ...]:
    _, last = script.text.span(target)
    return script.change("say-requires-grad", last - len(target.attr.encode()), last, "requires_grad")


def _called(script: Script, store: Store, target: ast.Attribute) -> tuple[Edit, ...]:
    if isinstance(store.node, ast.Assign) and len(store.node.targets) > 1:
        return ()
    code = f"requires_grad_({script.source(store.value) if store.value is not None else ''})"
    (_, behind), (_, last) = script.text.span(target), script.text.span(store.node)
    return script.change("call-requires-grad", behind - len(target.attr.encode()), last, code)
