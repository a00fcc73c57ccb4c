"""What the arguments of one DataLoader are known to be, and which of them exclude each other."""

from __future__ import annotations

import ast

from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script

MORE = "**"
_ALONE = ("shuffle", "sampler", "drop_last")
_NEEDS_WORKERS = (("persistent_workers", False), ("prefetch_factor", None), ("multiprocessing_context", None))


class Given:
    """The arguments of one DataLoader, with what is known of their values."""

    def __init__(self, script: Script, scope: Scope, given: dict[str, ast.expr]) -> None:
        self.script, self.scope, self.given = script, scope, given

    def contradiction(self) -> str | None:
        return self._without_workers() or self._with_sampler() or self._with_batch_sampler() or self._of_a_stream()

    def _without_workers(self) -> str | None:
        if not self._may_lack_workers():
            return None
        for name, harmless in _NEEDS_WORKERS:
            values = self._known(name)
            if values and all(value is not harmless for value in values):
                return f"{name}={values[0]!r} needs workers, and num_workers is 0"
        return None

    def _may_lack_workers(self) -> bool:
        """num_workers is 0, by default or by one of the calls that lead here."""
        if "num_workers" not in self.given:
            return MORE not in self.given
        return self._known("num_workers") == [0] or 0 in self._of_callers("num_workers")

    def _of_callers(self, name: str) -> list[object]:
        """What calls of this function surely give for the argument, a parameter that nothing changes."""
        node, words = self.given[name], [each.arg for each in self.scope.parameters]
        stores = self.script.names.stores(node.id, self.scope) if isinstance(node, ast.Name) else []
        if len(stores) != 1 or stores[0].how != "parameter" or stores[0].scope is not self.scope:
            return []
        place = words.index(stores[0].name) - (self.scope.receiver in words[:1])
        sites = [each for each in self.script.trace.sites(self.scope) if not _is_under_doubt(each)]
        given = [each.argument(stores[0].name, place) for each in sites if not _is_spread(each)]
        return [each.value for each in given if isinstance(each, ast.Constant)]

    def _with_sampler(self) -> str | None:
        shuffled = isinstance(self.given.get("shuffle"), ast.Constant) and self._known("shuffle") == [True]
        if self._known("shuffle") == [True] and self._is_something("sampler"):
            return "shuffle=True and a sampler exclude each other"
        if shuffled and self._is_something("sampler", or_none=True):
            return "shuffle=True excludes the sampler that is given under a condition"
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
            if isinstance(origin.node, ast.Attribute) and (field := self._field(origin.node, origin.scope)) is not None:
                found.append(field.value)
                continue
            if origin.is_parameter or not isinstance(origin.node, ast.Constant):
                return []
            if origin.store is not None and not _is_settled(self.script, origin.store):
                return []
            found.append(origin.node.value)
        return list(dict.fromkeys(found))

    def _field(self, node: ast.Attribute, scope: Scope) -> ast.Constant | None:
        """The value of Settings.workers, which the class body writes out and nothing changes."""
        host = self.script.trace.definition(node.value, scope) or self._plain(node.value, scope)
        if host is None or host.kind != "class" or len(stores := host.stores.get(node.attr, [])) != 1:
            return None
        changed = any(name.endswith(f".{node.attr}") for each in self.script.facts.scopes for name in each.stores)
        value = stores[0].value
        return value if isinstance(value, ast.Constant) and not changed and not host.attributes.get(node.attr) else None

    def _plain(self, node: ast.expr, scope: Scope) -> Scope | None:
        """The class of an object that is made without arguments."""
        calls = [end.call for end in self.script.trace.origins(node, scope)]
        if len(calls) != 1 or calls[0] is None or calls[0].args or calls[0].keywords:
            return None
        return self.script.trace.instance(node, scope)

    def _is_none(self, name: str) -> bool:
        return name in self.given and self._known(name) == [None]

    def _is_something(self, name: str, *, or_none: bool = False) -> bool:
        """Surely not None: an object that is made here; with OR_NONE, it is one or None."""
        origins = self.script.trace.origins(self.given.get(name), self.scope)
        found = [
            origin for origin in origins
            if not or_none or not isinstance(origin.node, ast.Constant) or origin.node.value is not None
        ]  # fmt: skip
        return (bool(found) and all(self._is_made(each.node, each.scope) for each in found)) or self._is_used(name)

    def _is_used(self, name: str) -> bool:
        """Whether set_epoch() of the argument is called under no condition: None has no such method."""
        word = dotted(self.given.get(name))
        if not word:
            return False
        own = word.partition(".")[0] == self.scope.receiver and self.scope.host is not None
        return any(
            dotted(call.receiver) == word
            and (call.scope is self.scope or (own and call.scope.host is self.scope.host))
            and not _is_under_doubt(call)
            for call in self.script.calls("set_epoch")
        )

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


def _is_under_doubt(call: Call) -> bool:
    """Under a condition, or where an error is caught or expected."""
    return any(
        block.kind in ("arm", "handler", "with") or (block.kind == "try" and getattr(block.owner, "handlers", []))
        for block in call.path
    )


def _is_spread(call: Call) -> bool:
    return any(isinstance(each, ast.Starred) for each in call.node.args) or any(
        each.arg is None for each in call.node.keywords
    )
