"""What objects, dictionaries, lists and records hold: what is put into them, and what is taken out again."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

from torchtriage.examine.source.definitions import Definitions, Origin
from torchtriage.examine.source.facts import Call, Scope, Store, dotted

_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace", "builtins.dict"})
_CONTAINERS = frozenset({"dict", "list", "defaultdict", "OrderedDict", "collections.defaultdict"})


class Contents(Definitions):
    """Follows values through the things that hold them."""

    @abstractmethod
    def _stored(self, store: Store) -> Iterator[Origin]:
        """Every end at which what STORE stores may start."""

    def _held(self, node: ast.expr, value: ast.expr, key: str | int, scope: Scope) -> Iterator[Origin]:
        """What is put into VALUE under KEY: an attribute, an entry of a dictionary, an element of a tuple or list."""
        found = [each for store in self._puts(dotted(node), scope) for each in self._stored(store)]
        is_entry, ends = isinstance(node, ast.Subscript), tuple[Origin, ...]()
        if not found and not is_entry and key in self._properties:
            found = [each for end, home in self._property(value, key, scope) for each in self.origins(end, home)]
        if (is_entry or not found) and not self.names.resolve(value, scope):
            ends = self.origins(value, scope)
            found += [each for origin in ends for each in self._inside(origin, key)]
        for name, home in self._names_of(value, scope, ends) if is_entry else ():
            found += [each for given, inner in self._put_in(name, home) for each in self.origins(given, inner)]
            own = self._puts(f"{name}.{key}", home) if name != dotted(value) else []
            found += [each for store in own for each in self._stored(store)]
        yield from found
        if not found or (is_entry and dotted(value).rpartition(".")[2] in self._rewritten):
            yield Origin(node, scope)

    def entry(self, held: ast.expr, key: str | int, scope: Scope) -> tuple[Origin, ...]:
        """Where the entry KEY of what HELD is may start: of a dictionary, a tuple, a list."""
        return tuple(each for origin in self.origins(held, scope) for each in self._inside(origin, key))

    @cached_property
    def _rewritten(self) -> frozenset[str]:
        """The last words of everything whose entries are written, or that is updated, somewhere in the file."""
        written = (
            name[:-2]
            for scope in self.facts.scopes
            for name, stores in scope.stores.items()
            if name.endswith("[]") and any(not self._is_followed(name[:-2], each) for each in stores)
        )
        updated = (
            dotted(call.receiver) for tail in ("update", "setdefault") for call in self.facts.calls.get(tail, ())
        )
        return frozenset(name.rpartition(".")[2] for name in (*written, *updated))

    @cached_property
    def _properties(self) -> frozenset[str]:
        """The names of all methods of the file that are read as attributes."""
        methods = (each for scope in self.facts.scopes if scope.kind == "class" for each in scope.inner.values())
        return frozenset(each.name for each in methods if is_property(each.node))

    def _property(self, value: ast.expr, key: str | int, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """What the property KEY of VALUE returns, and where."""
        host = self.instance(value, scope)
        method = self.method(host, str(key)) if host is not None else None
        if method is not None and is_property(method.node):
            yield from ((each.node.value, method) for each in method.returns if each.node.value is not None)

    def _is_followed(self, name: str, store: Store) -> bool:
        """Whether STORE writes an entry of NAME under a key that is written out, where that name is at home."""
        here = name in store.scope.stores and "." not in name
        return here and store.how == "assign" and not _is_computed(store, name)

    def _puts(self, name: str, scope: Scope) -> list[Store]:
        """The stores to NAME, "a.b": of self.b those of the class and its bases, of others those beside a's own."""
        root, _, rest = name.partition(".")
        if root and root == scope.receiver and scope.host is not None:
            return self._puts_of(scope.host, rest)
        named = self.names.definition(root, scope) if rest and "." not in rest else None
        if named is not None and named.kind == "class":
            return self._puts_of(named, rest)
        home = self.names.home(root, scope)
        return home.stores.get(name, []) if home is not None else []

    def _contents(self, held: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """Everything that a dictionary, a tuple or a list holds, whatever the key: loaders[phase]."""
        yield from self._values(held, scope)
        yield from self._parts(held, scope)

    def _put_in(self, name: str, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """What is put into NAME under keys that are computed, loaders[phase] = …, or is appended to it."""
        if not name:
            return
        for store in self._puts(f"{name}[]", scope):
            if store.value is not None and store.index is None and store.how == "assign" and _is_computed(store, name):
                yield store.value, store.scope
        for call in self._appends.get(name, ()):
            if self._is_same(name, call.scope, scope):
                yield call.node.args[0], call.scope

    @cached_property
    def _appends(self) -> dict[str, list[Call]]:
        found: dict[str, list[Call]] = {}
        for call in self.facts.calls.get("append", ()):
            if len(call.node.args) == 1 and (name := dotted(call.receiver)):
                found.setdefault(name, []).append(call)
        return found

    def _is_same(self, name: str, one: Scope, other: Scope) -> bool:
        """Whether NAME means the same thing in both scopes."""
        root = name.partition(".")[0]
        if root == one.receiver and root == other.receiver and one.host is not None and other.host is not None:
            return one.host in self.lineage(other.host) or other.host in self.lineage(one.host)
        return self.names.home(root, one) is self.names.home(root, other)

    def _inside(self, origin: Origin, key: str | int) -> Iterator[Origin]:
        """What the thing that ORIGIN made holds under KEY, as far as this file tells."""
        if origin.is_parameter:
            made = self._annotated(origin)
            stores = self._puts_of(made, str(key)) if made is not None and made.kind == "class" else []
            yield from (end for store in stores for end in self._stored(store))
            return
        match origin.node:
            case ast.Dict(keys=keys, values=values) if None not in keys:
                found = [v for k, v in zip(keys, values, strict=True) if isinstance(k, ast.Constant) and k.value == key]
                yield from self.origins(found[-1], origin.scope) if found else ()
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(key, int) and -len(parts) <= key < len(
                parts
            ):
                if not any(isinstance(each, ast.Starred) for each in parts):
                    yield from self.origins(parts[key], origin.scope)
            case ast.DictComp(value=each) | ast.ListComp(elt=each) | ast.GeneratorExp(elt=each):
                yield from self.origins(each, origin.scope)
            case ast.Call() as call:
                yield from self._member(call, origin.scope, key)

    def _member(self, call: ast.Call, scope: Scope, key: str | int) -> Iterator[Origin]:
        """What CALL's result holds under KEY: an object of a class of this file, a record, a namespace."""
        made = self._maker(call, scope)
        if made is not None and made.kind == "class":
            stores = self._puts_of(made, str(key))
            for store in stores:
                yield from self._stored(store)
            if not stores and (given := self._field(call, self._fields(made), key)) is not None:
                yield from self.origins(given, scope)
            return
        name = self.names.resolve(call.func, scope)
        if name in _NAMESPACES:
            yield from (end for each in call.keywords if each.arg == key for end in self.origins(each.value, scope))
        elif isinstance(call.func, ast.Name):
            for origin in self.origins(call.func, scope):
                words = self._record(origin)
                if words and (given := self._field(call, words, key)) is not None:
                    yield from self.origins(given, scope)

    def _puts_of(self, made: Scope, name: str) -> list[Store]:
        """The stores to NAME in the methods of the class MADE or of its bases; else those in the class's own body."""
        lineage = self.lineage(made)
        found = next((each.attributes[name] for each in lineage if name in each.attributes), [])
        plain = (
            [store for store in each.stores.get(name, ()) if isinstance(store.node, ast.Assign)] for each in lineage
        )
        return found or next(filter(None, plain), [])

    def _fields(self, made: Scope) -> list[str]:
        """The fields of a class without a constructor of its own, in order: of a data class, a NamedTuple."""
        if self.method(made, "__init__") is not None or not isinstance(made.node, ast.ClassDef):
            return []
        return [each.target.id for each in made.node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]  # fmt: skip

    def is_record(self, call: Call) -> bool:
        """Whether CALL only puts its arguments together: an instance of a namedtuple of this file."""
        name = isinstance(call.node.func, ast.Name)
        return name and any(self._record(end) for end in self.origins(call.node.func, call.scope))

    def _record(self, origin: Origin) -> list[str]:
        """The fields of namedtuple("Parts", "net optimizer")."""
        call = origin.call
        if (
            call is None
            or self.names.resolve(call.func, origin.scope) != "collections.namedtuple"
            or len(call.args) < 2
        ):
            return []
        match call.args[1]:
            case ast.Constant(value=str(words)):
                return words.replace(",", " ").split()
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return [str(each.value) if isinstance(each, ast.Constant) else "" for each in parts]
        return []

    def _field(self, call: ast.Call, words: list[str], key: str | int) -> ast.expr | None:
        if isinstance(key, int):
            key = words[key] if -len(words) <= key < len(words) else ""
        named = next((each.value for each in call.keywords if each.arg == key), None)
        if named is not None or key not in words or any(isinstance(each, ast.Starred) for each in call.args):
            return named
        at = words.index(key)
        return call.args[at] if at < len(call.args) else None

    def _element(self, store: Store, value: ast.expr) -> Iterator[Origin]:
        """What a loop takes out of VALUE, where that is written out in this file."""
        found = [end for node, scope in self._elements(store, value) for end in self.origins(node, scope)]
        yield from (Origin(each.node, each.scope, each.store or store) for each in found)
        if not found:
            yield Origin(None, store.scope, store)

    def _elements(self, store: Store, value: ast.expr) -> Iterator[tuple[ast.expr, Scope]]:
        match value:
            case ast.Call(func=ast.Attribute(value=held, attr="values"), args=[]) if store.index is None:
                yield from self._values(held, store.scope)
            case ast.Call(func=ast.Attribute(value=held, attr="items"), args=[]) if store.index == 1:
                yield from self._values(held, store.scope)
            case ast.Call(func=ast.Name(id="enumerate"), args=[held, *_]) if store.index == 1:
                yield from self._parts(held, store.scope)
            case ast.Call(func=ast.Name(id="zip"), args=parts) if store.index is not None and store.index < len(parts):
                yield from self._parts(parts[store.index], store.scope)
            case _ if store.index is None:
                yield from self._parts(value, store.scope)
            case _:
                for row, scope in self._parts(value, store.scope):
                    if isinstance(row, ast.Tuple | ast.List) and store.index < len(row.elts):
                        yield row.elts[store.index], scope

    def _values(self, held: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        for origin in (ends := self.origins(held, scope)):
            match origin.node:
                case ast.Dict(values=values):
                    yield from ((each, origin.scope) for each in values)
                case ast.DictComp(value=each):
                    yield each, origin.scope
        for name, home in self._names_of(held, scope, ends):
            for store in self._puts(f"{name}[]", home):
                if store.value is not None and store.index is None and store.how == "assign":
                    yield store.value, store.scope

    def _parts(self, value: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        for origin in (ends := self.origins(value, scope)):
            match origin.node:
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    yield from ((each, origin.scope) for each in parts if not isinstance(each, ast.Starred))
                case ast.ListComp(elt=each) | ast.GeneratorExp(elt=each):
                    yield each, origin.scope
        for name, home in self._names_of(value, scope, ends):
            yield from self._put_in(name, home)

    def _names_of(self, held: ast.expr, scope: Scope, ends: tuple[Origin, ...]) -> list[tuple[str, Scope]]:
        """The names that HELD, which starts at ENDS, has where it was made: that in build of self.x = build()."""
        found = [(dotted(held), scope)] if dotted(held) else []
        for origin in ends:
            empty = origin.call is not None and dotted(origin.call.func) in _CONTAINERS
            made = isinstance(origin.node, ast.Dict | ast.List) or empty
            if made and origin.store is not None and origin.store.index is None:
                found.append((origin.store.name, origin.store.scope))
        return list(dict.fromkeys(found))

    def _unpacked(self, store: Store, value: ast.expr, index: int) -> Iterator[Origin]:
        found = [each for origin in self.origins(value, store.scope) for each in self._inside(origin, index)]
        yield from (Origin(each.node, each.scope, each.store or store) for each in found)
        if not found:
            yield Origin(None, store.scope, store)


def _is_computed(store: Store, name: str) -> bool:
    """Whether STORE puts something into NAME under a key that is not written out."""
    targets = store.node.targets if isinstance(store.node, ast.Assign) else []
    return any(
        isinstance(each, ast.Subscript) and not isinstance(each.slice, ast.Constant) and dotted(each.value) == name
        for each in targets
    )


def is_property(node: ast.AST) -> bool:
    """Whether NODE is a function that is read as an attribute."""
    words = (dotted(each).rpartition(".")[2] for each in getattr(node, "decorator_list", ()))
    return any(word in ("property", "cached_property") for word in words)
