"""What the source alone shows about the arguments of a DataLoader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script

_LOADER = "torch.utils.data.DataLoader"
_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory")
_ALONE = ("shuffle", "sampler", "drop_last")
_NEEDS_WORKERS = (("persistent_workers", False), ("prefetch_factor", None), ("multiprocessing_context", None))


@detector("source/loader-args-invalid")
def loader_args_invalid(script: Script) -> Iterator[Sighting]:
    """A DataLoader is given arguments that exclude each other: it raises ValueError."""
    for call in script.named(_LOADER):
        given = _given(script, call)
        if given is None or _is_meant(call):
            continue
        why = _Given(script, call.scope, given).contradiction()
        if why is not None and not _is_tested(call, given):
            yield script.seen(call.node, f"{why}: DataLoader raises ValueError")


def _is_meant(call: Call) -> bool:
    """Whether the error is expected, as by pytest.raises, or caught."""
    for block in call.path:
        if block.kind == "try":
            return True
        if block.kind == "with" and isinstance(block.owner, ast.With | ast.AsyncWith):
            contexts = [item.context_expr for item in block.owner.items]
            if any(isinstance(each, ast.Call) and "aises" in dotted(each.func) for each in contexts):
                return True
    return False


def _given(script: Script, call: Call) -> dict[str, ast.expr] | None:
    """What CALL gives by name, **options with it; None where *args or **kwargs may bring what is not written here."""
    if any(isinstance(each, ast.Starred) for each in call.node.args) or len(call.node.args) > len(_POSITIONS):
        return None
    given: dict[str, ast.expr] = dict(zip(_POSITIONS, call.node.args, strict=False))
    for keyword in call.node.keywords:
        more = {keyword.arg: keyword.value} if keyword.arg else _options(script, keyword.value, call.scope)
        if more is None:
            return None
        given.update(more)
    return given


def _is_tested(call: Call, given: dict[str, ast.expr]) -> bool:
    """Whether a condition of the same function asks for a name that is given: its value may be another one here."""
    names = {each.id for value in given.values() for each in ast.walk(value) if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Name) and each.id in names
        for node in ast.walk(call.scope.node)
        if isinstance(node, ast.If | ast.IfExp)
        for each in ast.walk(node.test)
    )


def _options(script: Script, node: ast.expr, scope: Scope) -> dict[str, ast.expr] | None:
    """The entries of a dictionary that the file writes out once and changes nowhere."""
    if isinstance(node, ast.Dict | ast.Call):
        return _entries(node)
    stores = script.names.stores(node.id, scope) if isinstance(node, ast.Name) else []
    if len(stores) != 1 or stores[0].how != "assign" or stores[0].index is not None or _is_changed(script, stores[0]):
        return None
    return _entries(stores[0].value)


def _entries(node: ast.expr | None) -> dict[str, ast.expr] | None:
    match node:
        case ast.Dict(keys=keys, values=values):
            words = [each.value if isinstance(each, ast.Constant) else None for each in keys]
            return {str(word): value for word, value in zip(words, values, strict=True)} if None not in words else None
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            return {str(each.arg): each.value for each in keywords} if all(each.arg for each in keywords) else None
    return None


def _is_changed(script: Script, store: Store) -> bool:
    """Whether an entry of the dictionary gets another value: options["x"] = …, options.update(…), f(options)."""
    if any(f"{store.name}[]" in scope.stores for scope in script.facts.scopes):
        return True
    uses = (call for calls in script.facts.calls.values() for call in calls)
    return any(
        (dotted(call.receiver) == store.name and call.tail not in ("get", "items", "keys", "values", "copy"))
        or any(dotted(each) == store.name for each in call.node.args)
        for call in uses
    )


class _Given:
    """The arguments of one DataLoader, with what is known of their values."""

    def __init__(self, script: Script, scope: Scope, given: dict[str, ast.expr]) -> None:
        self.script, self.scope, self.given = script, scope, given

    def contradiction(self) -> str | None:
        return self._without_workers() or self._with_sampler() or self._with_batch_sampler() or self._of_a_stream()

    def _without_workers(self) -> str | None:
        if "num_workers" in self.given and self._known("num_workers") != [0]:
            return None
        for name, harmless in _NEEDS_WORKERS:
            values = self._known(name)
            if values and all(value is not harmless for value in values):
                return f"{name}={values[0]!r} needs workers, and num_workers is 0"
        return None

    def _with_sampler(self) -> str | None:
        if self._known("shuffle") == [True] and self._is_something("sampler"):
            return "shuffle=True and a sampler exclude each other"
        if self._is_none("batch_size") and self._known("drop_last") == [True]:
            return "batch_size=None and drop_last=True exclude each other"
        return None

    def _with_batch_sampler(self) -> str | None:
        if not self._is_something("batch_sampler"):
            return None
        clash = [
            name for name in _ALONE if self._known(name) == [True] or (name == "sampler" and self._is_something(name))
        ]
        sizes = self._known("batch_size")
        if sizes and all(size not in (1, None) for size in sizes):
            clash.insert(0, "batch_size")
        return f"a batch_sampler and {', '.join(clash)} exclude each other" if clash else None

    def _of_a_stream(self) -> str | None:
        """An IterableDataset decides its own order."""
        node = self.given.get("dataset")
        own = self.script.trace.instance(node, self.scope) if node is not None else None
        if own is None or "torch.utils.data.IterableDataset" not in self.script.trace.bases(own):
            return None
        if self._known("shuffle") == [True]:
            return f"{own.name} is an IterableDataset, which excludes shuffle=True"
        name = next((each for each in ("sampler", "batch_sampler") if self._is_something(each)), None)
        return f"{own.name} is an IterableDataset, which excludes a {name}" if name else None

    def _known(self, name: str) -> list[object]:
        """The values that the argument may have; [] when one of them is unknown, or the argument is not given."""
        found: list[object] = []
        for origin in self.script.trace.origins(self.given.get(name), self.scope):
            if origin.is_parameter or not isinstance(origin.node, ast.Constant):
                return []
            if origin.store is not None and not _is_settled(self.script, origin.store):
                return []
            found.append(origin.node.value)
        return list(dict.fromkeys(found))

    def _is_none(self, name: str) -> bool:
        return name in self.given and self._known(name) == [None]

    def _is_something(self, name: str) -> bool:
        """Surely not None: an object that is made here."""
        origins = self.script.trace.origins(self.given.get(name), self.scope)
        return bool(origins) and all(self._is_made(origin.node, origin.scope) for origin in origins)

    def _is_made(self, node: ast.expr | None, scope: Scope) -> bool:
        """A sampler of torch or of this file, or any class by its capital: what a function returns may be None."""
        if not isinstance(node, ast.Call):
            return False
        last = dotted(node.func).rpartition(".")[2]
        own = self.script.trace.definition(node.func, scope)
        return last[:1].isupper() and (own is None or own.kind == "class")


def _is_settled(script: Script, store: Store) -> bool:
    """Whether the name has this one value: a name with several stores may have either."""
    if store.how != "assign":
        return False
    if "." in store.name:
        host = store.scope.host
        return host is not None and len(host.attributes.get(store.name.partition(".")[2], ())) == 1
    return len(script.names.stores(store.name, store.scope)) == 1
