"""What stands on an accelerator: what was moved there, or made there."""

from __future__ import annotations

import ast
from functools import cached_property

from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.script import Script


class Devices:
    """What of a file is surely on an accelerator."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def is_moved(self, node: ast.expr | None, scope: Scope, deep: int = 0) -> bool:
        """Whether NODE was moved to, or made on, an accelerator: by .cuda(), .to("cuda"), device="cuda"."""
        if node is None or deep > 6:
            return False
        if isinstance(node, ast.Call) and (self.is_move(node, scope) or self._is_handed_on(node, scope, deep)):
            return True
        if isinstance(node, ast.Tuple | ast.List):
            return any(self.is_moved(each, scope, deep + 1) for each in node.elts)
        if isinstance(node, ast.Subscript) and self.is_moved(node.value, scope, deep + 1):
            return True
        name = dotted(node)
        return bool(name) and (self._by_origin(node, scope, deep) or self._by_store(name, scope, deep))

    def is_accelerator(self, node: ast.expr | None, scope: Scope) -> bool:
        """Whether NODE names an accelerator: "cuda", torch.device("cuda:0"), either arm of a condition."""
        return any(self._names_one(origin) for origin in self.script.trace.origins(node, scope))

    def _names_one(self, origin: Origin) -> bool:
        if origin.is_parameter and origin.store is not None:
            default = _default(origin.store)
            return default is not None and self.is_accelerator(default, origin.scope)
        match origin.node:
            case ast.Attribute(attr=option):
                return option in self._options
            case ast.Call(args=[inner, *_]) | ast.Call(keywords=[ast.keyword(arg="type", value=inner), *_]):
                device = self.script.names.resolve(origin.node.func, origin.scope) == "torch.device"
                return device and self.is_accelerator(inner, origin.scope)
        return _is_kind(origin.node)

    @cached_property
    def _options(self) -> frozenset[str]:
        """The options and fields that name an accelerator unless someone says otherwise: --device, default="cuda"."""
        given = (
            str(call.node.args[0].value).lstrip("-").replace("-", "_")
            for call in self.script.calls("add_argument")
            if _is_kind(call.argument("default")) and call.node.args and isinstance(call.node.args[0], ast.Constant)
        )
        fields = (
            name
            for scope in self.script.classes
            for name, stores in scope.stores.items()
            if "device" in name and any(_is_kind(store.value) for store in stores)
        )
        return frozenset((*given, *fields))

    def is_move(self, call: ast.Call, scope: Scope) -> bool:
        """Whether CALL itself moves something to an accelerator, or makes it there."""
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if "device" in given and self.is_accelerator(given["device"], scope):
            return True
        match call.func:
            case ast.Attribute(attr="cuda"):
                return True
            case ast.Attribute(attr="to"):
                return bool(call.args) and self.is_accelerator(call.args[0], scope)
        return False

    def _is_handed_on(self, call: ast.Call, scope: Scope, deep: int) -> bool:
        """model.eval() hands on the model, torch.compile(model) its argument."""
        passed = [*call.args[:1]]
        if isinstance(call.func, ast.Name):
            passed.append(call.func)
        if isinstance(call.func, ast.Attribute) and isinstance(
            call.func.value, ast.Name | ast.Call | ast.Attribute | ast.Subscript
        ):
            passed.append(call.func.value)
        return any(self.is_moved(each, scope, deep + 1) for each in passed)

    @cached_property
    def _moved(self) -> set[int]:
        """The places where what is moved somewhere in the file was made, or came in."""
        return {
            key
            for call in self.script.calls("cuda", "to")
            if call.receiver is not None and self.is_move(call.node, call.scope)
            for origin in self.script.trace.origins(call.receiver, call.scope)
            if (key := _place(origin)) is not None
        }

    def _by_origin(self, node: ast.expr, scope: Scope, deep: int) -> bool:
        return any(
            _place(origin) in self._moved
            or (origin.call is not None and self.is_moved(origin.call, origin.scope, deep + 1))
            for origin in self.script.trace.origins(node, scope)
        )

    def _by_store(self, name: str, scope: Scope, deep: int) -> bool:
        root, dot, rest = name.partition(".")
        if dot:
            host = scope.host if root == scope.receiver else None
            stores = host.attributes.get(rest, []) if host is not None else []
        else:
            stores = self.script.names.stores(name, scope)
        return any(self._stored(store, deep) for store in stores)

    def _stored(self, store: Store, deep: int) -> bool:
        if store.how == "parameter":
            words = [each.arg for each in store.scope.parameters]
            place = words.index(store.name) - (store.scope.receiver in words[:1])
            sites = self.script.trace.sites(store.scope)
            return any(self.is_moved(site.argument(store.name, place), site.scope, deep + 1) for site in sites)
        value = store.value
        if isinstance(value, ast.Tuple) and store.index is not None and store.index < len(value.elts):
            value = value.elts[store.index]
        return store.how == "assign" and self.is_moved(value, store.scope, deep + 1)


def _is_kind(node: ast.expr | None) -> bool:
    """Whether NODE is the name of an accelerator."""
    match node:
        case ast.Constant(value=str(word)) | ast.JoinedStr(values=[ast.Constant(value=str(word)), *_]):
            return word.startswith(("cuda", "xpu", "mps"))
    return False


def _default(store: Store) -> ast.expr | None:
    """What a parameter is when no caller gives it."""
    arguments = getattr(store.scope.node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return None
    words = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    given = dict(zip(reversed(words), reversed(arguments.defaults), strict=False))
    given |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    return given.get(store.name)


def _place(origin: Origin) -> int | None:
    """What tells the thing at ORIGIN from others: where it is made, or the store by which it comes in."""
    if isinstance(origin.node, ast.Call):
        return id(origin.node)
    return id(origin.store) if origin.store is not None and not isinstance(origin.node, ast.Constant) else None
