"""Autocast regions: where they reach, for which device, and in which format they compute."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.devices import Devices
from torchtriage.examine.source.facts import Block, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.mixed_precision_and_optimization.rules.settings import ends, keywords, word

_NAMES = symbols().autocasts
_FORMATS = {name: dtype for name, dtype in symbols().dtypes.items() if dtype in ("float16", "bfloat16")}
_OFF = symbols().grad_free


class Autocast(Struct, frozen=True):
    """One autocast context as it is entered.

    device: "cuda" (or another accelerator), "cpu", or "" when it is not known. dtype: "float16", "bfloat16", or "" when
    it may be either. disabled: enabled=False. switched: enabled= is given something that only the run knows.
    """

    call: ast.Call
    scope: Scope
    device: str
    dtype: str
    disabled: bool
    switched: bool


def given(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """The argument of that NAME or at that POSITION; None when it is not given."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if position < len(call.args) else None


def spelled(script: Script, node: ast.expr, scope: Scope) -> str:
    """The dotted name under which a thing is imported, as it is written: "torch.cuda.amp.autocast"; "" otherwise.

    Nothing as well when the name may come from several imports, as where an older torch is allowed for.
    """
    root, _, rest = dotted(node).partition(".")
    home = script.names.home(root, scope) if root else None
    stores = home.stores[root] if home is not None else []
    imported = {store.imported for store in stores}
    if len(imported) != 1 or not all(imported):
        return ""
    return f"{imported.pop()}.{rest}" if rest else imported.pop()


def formats(script: Script, node: ast.expr | None, scope: Scope) -> str:
    """The half format that NODE surely is: "float16" or "bfloat16"; "" when it may be another."""
    found = {_format(script, origin.node, origin.scope) for origin in ends(script, node, scope)}
    return found.pop() if len(found) == 1 else ""


def _format(script: Script, node: ast.expr | None, scope: Scope) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _FORMATS.get(f"torch.{node.value}", "")
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[module, name, *_]):
            if script.names.resolve(module, scope) != "torch":
                return ""
            found = {word(origin.node) for origin in ends(script, name, scope)}
            return _FORMATS.get(f"torch.{found.pop()}", "") if len(found) == 1 else ""
    return _FORMATS.get(script.names.resolve(node, scope), "") if node is not None else ""


class Regions:
    """The autocast regions of one file."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.homes = {id(scope.body): scope for scope in script.facts.scopes}
        self._known: dict[int, tuple[Autocast | str, ...]] = {}

    def around(self, path: Sequence[Block]) -> Autocast | None:
        """The innermost autocast context in which PATH lies."""
        for block in reversed(path):
            for each in reversed(self.entered(block)):
                if isinstance(each, Autocast):
                    return each
        return None

    def is_without_graph(self, path: Sequence[Block]) -> bool:
        return any(each in _OFF for block in path for each in self.entered(block) if isinstance(each, str))

    def entered(self, block: Block) -> tuple[Autocast | str, ...]:
        """What BLOCK enters: autocast contexts, and the real names of other context managers and decorators."""
        if id(block) not in self._known:
            self._known[id(block)] = tuple(self._contexts(block)) if block.kind in ("with", "body") else ()
        return self._known[id(block)]

    def _contexts(self, block: Block) -> Iterator[Autocast | str]:
        scope = self.homes.get(id(block.path[0]))
        owner = block.owner
        if scope is None:
            return
        if isinstance(owner, ast.With | ast.AsyncWith) and block.kind == "with":
            for item in owner.items:
                yield from self._context(item.context_expr, scope)
                yield from self._stacked(item, scope)
        elif isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in owner.decorator_list:
                yield from self._context(decorator, scope.parent or scope)
                if isinstance(decorator, ast.Call) and any(k.arg == "cast_inputs" for k in decorator.keywords):
                    yield Autocast(decorator, scope, "", "", True, False)  # custom_fwd leaves autocast then

    def _context(self, node: ast.expr, scope: Scope) -> Iterator[Autocast | str]:
        helper = self.script.trace.definition(node.func, scope) if isinstance(node, ast.Call) else None
        if helper is not None and helper is not scope:
            yield from self._managed(helper) if helper.kind == "function" else self._own(helper)
        for origin in self.script.trace.origins(node, scope):
            made = origin.call
            name = self.script.names.resolve(made.func if made is not None else origin.node, origin.scope)
            if made is not None and name in _NAMES:
                yield self.read(made, origin.scope)
            elif name:
                yield name
            elif made is not None:
                yield from self._partial(made, origin)

    def _stacked(self, item: ast.withitem, scope: Scope) -> Iterator[Autocast | str]:
        """What an ExitStack enters: stack.enter_context(…)."""
        if isinstance(item.optional_vars, ast.Name):
            for call in self.script.calls("enter_context"):
                if call.scope is scope and dotted(call.receiver) == item.optional_vars.id:
                    for given in call.arguments:
                        yield from self._context(given, scope)

    def _own(self, host: Scope) -> Iterator[Autocast | str]:
        """What a context manager that is a class of this file enters with its own __enter__."""
        entering = self.script.trace.method(host, "__enter__")
        if entering is None or not any(call.tail in ("__enter__", "enter_context") for call in entering.calls):
            return
        for method in filter(None, (self.script.trace.method(host, "__init__"), entering)):
            for call in method.calls:
                if self._real(call.node.func, method) in _NAMES:
                    yield self.read(call.node, method)

    def _managed(self, helper: Scope) -> Iterator[Autocast | str]:
        """What a @contextmanager of this file has entered where it yields."""
        marks = getattr(helper.node, "decorator_list", [])
        if not any(dotted(each).rpartition(".")[2] == "contextmanager" for each in marks):
            return
        for inner in ast.walk(helper.node):
            if isinstance(inner, ast.With) and any(isinstance(each, ast.Yield) for each in ast.walk(inner)):
                for item in inner.items:
                    yield from self._context(item.context_expr, helper)

    def _partial(self, made: ast.Call, origin: Origin) -> Iterator[Autocast]:
        """The context of partial(autocast, …)()."""
        for each in self.script.trace.origins(made.func, origin.scope):
            first = next(iter(each.call.args), None) if each.call is not None else None
            if first is None or each.call is None or self._real(each.call.func, each.scope) != "functools.partial":
                continue
            if self._real(first, each.scope) in _NAMES:
                args, keywords = [*each.call.args[1:], *made.args], [*made.keywords, *each.call.keywords]
                yield self.read(ast.copy_location(ast.Call(first, args, keywords), each.call), each.scope)

    def _real(self, node: ast.expr, scope: Scope) -> str:
        return self.script.names.resolve(node, scope)

    def read(self, call: ast.Call, scope: Scope) -> Autocast:
        """What an autocast CALL asks for."""
        options = keywords(self.script, call, scope)
        if options is None:
            return Autocast(call, scope, "", "", False, True)
        call = ast.copy_location(ast.Call(call.func, call.args, [ast.keyword(*each) for each in options.items()]), call)
        name = spelled(self.script, call.func, scope)
        old = name.startswith(("torch.cuda.amp", "torch.cpu.amp"))
        device = name.split(".")[1] if old else self._device(given(call, "device_type", 0), scope)
        enabled = given(call, "enabled", 0 if old else 2)
        kind = given(call, "dtype", 1)
        if kind is None or (isinstance(kind, ast.Constant) and kind.value is None):
            dtype = {"cuda": "float16", "cpu": "bfloat16"}.get(device, "")
        else:
            dtype = formats(self.script, kind, scope)
        constant = enabled.value if isinstance(enabled, ast.Constant) else enabled
        return Autocast(call, scope, device, dtype, constant is False, constant not in (None, True, False))

    def _device(self, node: ast.expr | None, scope: Scope) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value).partition(":")[0]
        if isinstance(node, ast.Attribute) and node.attr == "type":
            node = node.value
        return "cuda" if node is not None and Devices(self.script).is_accelerator(node, scope) else ""


@view(Regions, of=Script)
def regions(script: Script) -> tuple[Regions, ...]:
    return (Regions(script),)


def regions_of(script: Script) -> Regions:
    """The one Regions of SCRIPT."""
    found: Regions = next(iter(regions(script)))
    return found
