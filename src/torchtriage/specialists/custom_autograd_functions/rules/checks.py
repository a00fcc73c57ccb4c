"""How the gradients of autograd functions are checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.script import Script

# Methods that keep the precision of a tensor, and what makes a tensor of the default precision.
_KEEPING = frozenset(
    {"requires_grad_", "cuda", "cpu", "clone", "detach", "view", "reshape", "contiguous", "unsqueeze", "squeeze"}
    | {"t", "transpose", "permute", "abs", "exp", "mul", "add", "sub", "div", "clamp", "normal_", "uniform_", "expand"}
)
_CASTS = {"double": "double", "float": "single", "half": "single", "bfloat16": "single"}
_MAKERS = frozenset(f"torch.{name}" for name in ("randn", "rand", "ones", "zeros", "empty", "linspace", "eye"))
_CHECKS = ("torch.autograd.gradcheck", "torch.autograd.gradgradcheck")
_DOUBLE = frozenset({"torch.float64", "torch.double", "torch.complex128", "torch.cdouble"})
_SINGLE = frozenset({"torch.float32", "torch.float", "torch.float16", "torch.half", "torch.bfloat16"})
_EPS = 1e-5


@detector("source/gradcheck-in-float32")
def gradcheck_in_float32(script: Script) -> Iterator[Sighting]:
    """Gradcheck is given an input that is not float64."""
    tails = {"gradcheck", "gradgradcheck", *_aliases(script)}
    calls = [call for call in script.calls(*sorted(tails)) if _checks(script, call)]
    if not calls or any(script.calls("set_default_dtype", "set_default_tensor_type")):
        return
    for call in calls:
        given = call.argument("inputs", 1)
        if given is None or _is_coarse(call):
            continue
        for each in _each_input(given, call):
            found = _Precision(script).of(each, call.scope, call)
            if found == "single" and _needs_gradient(each, call):
                yield script.seen(
                    call.node,
                    f"{script.source(each)} is in single precision: differences of eps = 1e-6 are lost in rounding: "
                    "the check fails for a right backward, or needs tolerances that let a wrong one pass",
                )
                break


def _aliases(script: Script) -> set[str]:
    return {store.name for store in script.facts.aliases if store.imported.endswith(("gradcheck",))}


def _checks(script: Script, call: Call) -> bool:
    root = dotted(call.node.func).partition(".")[0]
    if any(not store.imported.startswith("torch") for store in script.names.stores(root, call.scope)):
        return False
    name = script.name(call)
    return name in _CHECKS or name.startswith("torch.autograd.gradcheck.")


def _is_coarse(call: Call) -> bool:
    """Whether the step of the differences was chosen for single precision."""
    eps = call.argument("eps", 2)
    if eps is None:
        return False
    return not (isinstance(eps, ast.Constant) and isinstance(eps.value, float) and eps.value <= _EPS)


def _each_input(node: ast.expr, call: Call) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        ways = reaching(call.scope.stores.get(node.id, []), call)
        value = ways[0].value if len(ways) == 1 and ways[0].index is None and ways[0].how == "assign" else None
        if isinstance(value, ast.Tuple | ast.List):
            return list(value.elts)
        if isinstance(value, ast.ListComp):
            return [value.elt]
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


class _Precision:
    """Whether an expression surely is in single or double precision; "" where neither is sure."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def of(self, node: ast.expr, scope: Scope, at: Call | Store, deep: int = 0) -> str:
        match node:
            case ast.Name(id=name) if deep < 6:
                stores = [store for store in scope.stores.get(name, ()) if store.how != "augment"]
                kinds = {self._stored(store, deep) for store in reaching(stores, at)}
                return kinds.pop() if len(kinds) == 1 else ""
            case ast.BinOp(left=left, right=ast.Constant()) | ast.BinOp(left=ast.Constant(), right=left):
                return self.of(left, scope, at, deep)
            case ast.Call():
                return self._called(node, scope, at, deep)
        return ""

    def _stored(self, store: Store, deep: int) -> str:
        whole = store.how == "assign" and store.index is None and store.value is not None
        return self.of(store.value, store.scope, store, deep + 1) if whole and store.value is not None else ""

    def _called(self, node: ast.Call, scope: Scope, at: Call | Store, deep: int) -> str:
        name = self.script.names.resolve(node.func, scope)
        kinds = [keyword.value for keyword in node.keywords if keyword.arg in ("dtype", None)]
        if kinds:
            return self._dtype(kinds[0], scope)
        if name == "torch.nn.Parameter" and node.args:
            return self.of(node.args[0], scope, at, deep)
        if name in _MAKERS or (name == "torch.tensor" and _holds_float(node)):
            return "single"
        if name or not isinstance(node.func, ast.Attribute):
            return ""
        return self._method(node.func, node, scope, at, deep)

    def _method(self, method: ast.Attribute, node: ast.Call, scope: Scope, at: Call | Store, deep: int) -> str:
        if method.attr in _CASTS:
            return _CASTS[method.attr]
        keeps = method.attr in _KEEPING
        if method.attr == "to" and len(node.args) == 1:
            keeps = _is_device(node.args[0])
            if not keeps:
                return self._dtype(node.args[0], scope)
        return self.of(method.value, scope, at, deep) if keeps else ""

    def _dtype(self, node: ast.expr, scope: Scope) -> str:
        if isinstance(node, ast.Name):  # dtype = torch.float32
            stores = self.script.names.stores(node.id, scope)
            plain = len(stores) == 1 and stores[0].how == "assign" and stores[0].index is None
            node = (stores[0].value if plain else None) or node
        name = self.script.names.resolve(node, scope)
        return "double" if name in _DOUBLE else "single" if name in _SINGLE else ""


def _is_device(node: ast.expr) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text or dotted(node).rpartition(".")[2] == "device"


def _holds_float(node: ast.Call) -> bool:
    inside = ast.walk(node.args[0]) if node.args else ()
    parts = list(inside)
    plain = all(isinstance(e, ast.Constant | ast.List | ast.Tuple | ast.UnaryOp | ast.USub | ast.Load) for e in parts)
    return plain and any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in parts)


def _needs_gradient(node: ast.expr, call: Call) -> bool:
    """Whether NODE surely asks for a gradient: requires_grad=True where it was made, or set later."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    made = [store.value for name in names for store in call.scope.stores.get(name, ()) if store.value is not None]
    for name in names:
        sets = call.scope.stores.get(f"{name}.requires_grad", [])
        if sets and sets[-1].order < call.order:
            return True
        if any(each.tail == "requires_grad_" and dotted(each.receiver) == name for each in call.scope.calls):
            return True
    return any(_asks(inner) for tree in (node, *made) for inner in ast.walk(tree))


def _asks(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg="requires_grad", value=ast.Constant(value=True)):
            return True
        case ast.Attribute(attr="requires_grad_" | "Parameter") | ast.Name(id="Parameter"):
            return True
    return False
