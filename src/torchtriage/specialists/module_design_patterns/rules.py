"""What the source alone shows about how a module is built."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.classes import ModuleClass
from torchtriage.examine.source.facts import Scope, dotted

_REGISTRARS = ("ModuleList", "ModuleDict", "Sequential", "ParameterList", "ParameterDict")
_BY_NAME = ("add_module", "register_module", "register_parameter", "setattr", "__setattr__")

# Modules without parameters, buffers or a training mode: outside of parameters() they lose nothing.
_STATELESS = {
    *("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Hardtanh"),
    *("Hardswish", "Hardsigmoid", "Softplus", "Softsign", "LogSigmoid", "Softmax", "LogSoftmax", "Softmin"),
    *("Identity", "Flatten", "Unflatten", "Upsample", "PixelShuffle", "PixelUnshuffle", "ZeroPad2d"),
    *("MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d"),
    *("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"),
}


@detector("source/unregistered-modules")
def unregistered_modules(module: ModuleClass) -> Iterator[Sighting]:
    """Modules or parameters in a plain list, dict or tuple are not registered."""
    if any(_is_own(call.receiver, call.scope) or call.tail == "setattr" for call in module.calls(*_BY_NAME)):
        return
    for name in module.scope.attributes:
        held = list(module.contents(name))
        lost = [at.node for element, scope, at in held if _is_lost(module, element, scope)]
        if lost and not _is_registered(module, name):
            yield module.script.seen(
                lost[0],
                f"self.{name} is a plain container: the modules in it are missing from parameters(), "
                "to() and state_dict()",
            )


def _is_lost(module: ModuleClass, element: ast.expr, scope: Scope) -> bool:
    """A module or parameter that is made for the container and has no other name in the module."""
    script = module.script
    if isinstance(element, ast.Name):
        stores = script.names.stores(element.id, scope)
        if any(dotted(each.value) == element.id for stores in module.scope.attributes.values() for each in stores):
            return False
        if any(store.how != "assign" for store in stores):
            return False
    elif not isinstance(element, ast.Call):
        return False
    made = script.roles.made(element, scope, "model")
    return any(part.name.rpartition(".")[2] not in _STATELESS for part in made if part.scope is not None)


def _is_registered(module: ModuleClass, name: str) -> bool:
    """Whether self.NAME, or the local list behind it, goes into a container that registers what it is given."""
    local = {dotted(store.value) for store in module.scope.attributes[name]} - {""}
    for call in module.calls(*_REGISTRARS):
        inside = {dotted(inner) for argument in call.arguments for inner in ast.walk(argument)}
        if inside & {f"{call.scope.receiver}.{name}", *local}:
            return True
    return False


def _is_own(receiver: ast.expr | None, scope: Scope) -> bool:
    return dotted(receiver) == scope.receiver
