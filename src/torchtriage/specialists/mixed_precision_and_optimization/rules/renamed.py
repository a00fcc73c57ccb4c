"""What the source alone shows about names of mixed precision that have moved."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.linked import Links
from torchtriage.examine.source.nodes import nodes_in
from torchtriage.examine.source.script import Script

# The old module and the device that its names stood for.
_OLD = {"torch.cuda.amp": "cuda", "torch.cpu.amp": "cpu"}
_MODULES = {"autocast_mode": "autocast", "grad_scaler": "GradScaler"}
_NEW = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
# autocast had its device by its module, and took these by position.
_POSITIONS = {"autocast": ("enabled", "dtype", "cache_enabled")}
_REMEDY = "name-the-device"


@detector("source/amp-api-deprecated")
def amp_api_deprecated(script: Script) -> Iterator[Sighting]:
    """A name of torch.cuda.amp or torch.cpu.amp is used, which torch.amp has replaced."""
    if not any(word in script.text.data for word in (b"cuda.amp", b"cpu.amp", b"import amp")):
        return
    if any(_GONE.search(each) for each in _texts(script)):
        return
    for call in script.calls(*_tails(script)):
        old = _old(script, call.node.func, call.scope)
        if old is not None and not _is_fallback(call.path) and not _is_alternative(call):
            yield _seen(script, call.node, old, _call(script, call, old))
    yield from _handed(script)
    for scope in script.facts.scopes if b"custom_" in script.text.data else ():
        for decorator in scope.node.decorator_list if isinstance(scope.node, ast.FunctionDef) else ():
            old = _old(script, decorator, scope.parent or scope)
            if old is not None and not _is_fallback(scope.body.path):
                yield _seen(script, decorator, old, _decorator(script, decorator, old))


_GONE = re.compile(rb"^\s*(from|import) torch\._six", re.MULTILINE)
"""A module that no torch has which warns of the old names: where it is imported, none of these is meant."""


def _texts(script: Script) -> Iterator[bytes]:
    """The text of SCRIPT, and of the files of the project that it imports."""
    yield script.text.data
    links = Links(script.text.path, script.facts, trains=True)
    if links.own is None:
        return
    for name in script.facts.imports:
        found = links.file(name.removesuffix(".*"), links.own)
        if found is not None:
            yield found[0].data
    script.links.used.update(links.used)
    script.links.absent += links.absent


def _handed(script: Script) -> Iterator[Sighting]:
    """Old names that are not called where they stand: in partial(torch.cuda.amp.autocast), or kept by name."""
    wanted = _tails(script)
    found: list[tuple[ast.expr | None, Call | Store]] = [
        (node, store)
        for scope in script.facts.scopes
        for stores in scope.stores.values()
        for store in stores
        if store.how == "assign" and store.index is None
        for node in (store.value.values if isinstance(store.value, ast.Dict) else [store.value])
    ]
    found += [(each, call) for call in script.calls("partial") for each in call.node.args[:1]]
    for node, spot in found:
        if isinstance(node, ast.Name | ast.Attribute) and dotted(node).rpartition(".")[2] in wanted:
            old = None if _is_fallback(spot.path) else _old(script, node, spot.scope)
            if old is not None:
                yield _seen(script, node, old, ())


def _seen(script: Script, node: ast.expr, old: tuple[str, str], edits: tuple[Edit, ...]) -> Sighting:
    device, name = old
    given = f'device_type="{device}"' if name.startswith("custom") else f'"{device}"'
    return script.seen(
        node,
        f"torch.{device}.amp.{name} is deprecated and warns (FutureWarning); it is torch.amp.{name}({given}, …)",
        edits,
    )


def _tails(script: Script) -> list[str]:
    """Under which last words the old names may be called here."""
    aliases = [store.name for store in script.facts.aliases if store.imported.startswith(tuple(_OLD))]
    return sorted({*_NEW, *aliases})


def _old(script: Script, node: ast.expr, scope: Scope) -> tuple[str, str] | None:
    """The device and the name that an old NAME stands for; None for any other."""
    module, _, name = _spelled(script, node, scope).rpartition(".")
    head, _, last = module.rpartition(".")
    if _MODULES.get(last) == name:
        module = head
    return (_OLD[module], name) if module in _OLD and name in _NEW else None


def _is_fallback(path: tuple[Block, ...]) -> bool:
    """Whether PATH is only taken for another torch: after an import or a call that failed, or by its version."""
    for block in path:
        if block.kind == "handler":
            return True
        if block.kind == "try" and isinstance(block.owner, ast.Try) and block.owner.handlers:
            return True
        if block.kind == "arm" and isinstance(block.owner, ast.If) and _asks_for_torch(block.owner.test):
            return True
    return False


def _is_alternative(call: Call) -> bool:
    """Whether CALL is one side of a conditional expression that asks for the version."""
    return any(
        isinstance(node, ast.IfExp) and _asks_for_torch(node.test) and id(call.node) in nodes_in(node)
        for node in ast.walk(call.statement)
    )


def _asks_for_torch(test: ast.expr) -> bool:
    words = {dotted(node).lower() for node in ast.walk(test) if isinstance(node, ast.Name | ast.Attribute)}
    return any("version" in word or "hasattr" in word or "torch_" in word for word in words)


def _call(script: Script, call: Call, old: tuple[str, str]) -> tuple[Edit, ...]:
    """torch.cuda.amp.autocast(True) → torch.amp.autocast("cuda", enabled=True)."""
    device, name = old
    node, given, data = call.node, list(call.node.args), script.text.data
    new, span, whole = _root(script, call.scope), script.text.span(node.func), script.text.span(node)
    if new is None or any(_is_no_value(each) for each in given):
        return ()
    if name.startswith("custom") and given:
        return ()
    opening = end = data.find(b"(", span[1], whole[1]) + 1
    named = b""
    for word, each in zip(_POSITIONS.get(name, ()), given, strict=False):
        place = script.text.span(each)
        if place[0] != opening and data[place[0] - 1 : place[0]] == b"(":
            return ()
        named += data[end : place[0]] + f"{word}=".encode() + data[place[0] : place[1]]
        end = place[1]
    text = f'device_type="{device}"' if name.startswith("custom") else f'"{device}"'
    text += ", " if node.args or node.keywords else ""
    return script.change(_REMEDY, span[0], end, f"{new}.{name}({text}{named.decode()}")


def _is_no_value(node: ast.expr) -> bool:
    """Whether NODE as a first argument tells that the call is not what its name says: *args, or a device."""
    return isinstance(node, ast.Starred) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _decorator(script: Script, node: ast.expr, old: tuple[str, str]) -> tuple[Edit, ...]:
    """@custom_fwd → @torch.amp.custom_fwd(device_type="cuda")."""
    device, name = old
    new = _root(script, script.facts.scopes[0])
    if new is None or not name.startswith("custom"):
        return ()
    return script.replaced(_REMEDY, node, f'{new}.{name}(device_type="{device}")')


def _root(script: Script, scope: Scope) -> str | None:
    """What torch.amp is called here; None where torch itself is not imported."""
    home = script.names.home("torch", scope)
    stores = home.stores["torch"] if home is not None else []
    return "torch.amp" if stores and all(store.imported == "torch" for store in stores) else None


def _spelled(script: Script, node: ast.expr, scope: Scope) -> str:
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
