"""Where a value comes from: through names, unpacking, self.x, helper functions and parameters of the same file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from torchtriage.examine.source.facts import Call, Facts, Scope, Store, dotted
from torchtriage.examine.source.names import Names

_DEPTH = 12
_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace", "builtins.dict"})
_TRAINING = frozenset({"backward", "step", "unscale_", "zero_grad", "clip_grad_norm_", "save"})
_CONTAINERS = frozenset({"dict", "list", "defaultdict", "OrderedDict", "collections.defaultdict"})
_SAME = frozenset({"to", "cuda", "cpu", "train", "eval", "float", "half", "double", "bfloat16", "requires_grad_"})


class Origin(Struct, frozen=True):
    """The end of a trace: an expression that is no name any more, and the store that gave it its last name.

    A parameter whose callers are unknown ends at its own store, with its annotation as the expression.
    """

    node: ast.expr | None
    scope: Scope
    store: Store | None = None

    @property
    def call(self) -> ast.Call | None:
        return self.node if isinstance(self.node, ast.Call) else None

    @property
    def is_parameter(self) -> bool:
        return self.store is not None and self.store.how == "parameter"


class Trace:
    """Follows the values of one file. Every answer is remembered, so asking twice costs nothing."""

    def __init__(self, facts: Facts, names: Names) -> None:
        self.facts, self.names = facts, names
        self._known: dict[tuple[int, int], tuple[Origin, ...]] = {}
        self._open: set[tuple[int, int]] = set()
        self._asked: set[int] = set()
        self._finding: set[int] = set()
        self._draft: dict[tuple[int, int], tuple[Origin, ...]] = {}
        self._draft_sites: dict[int, tuple[Call, ...]] = {}
        self._cuts = 0
        self._sites: dict[int, tuple[Call, ...]] = {}
        self._objects: dict[int, tuple[Call, ...]] | None = None
        self._methods = {name for scope in facts.scopes if scope.kind == "class" for name in scope.inner}

    def origins(self, node: ast.expr | None, scope: Scope) -> tuple[Origin, ...]:
        """Every end at which the value of NODE may start, in the order of the file."""
        if node is None:
            return ()
        self.names.count()
        key = (id(node), id(scope))
        if key in self._known:
            return self._known[key]
        if key in self._draft or key in self._open or len(self._open) > _DEPTH:
            self._cuts += 1
            return self._draft.get(key, ())
        before = self._cuts
        self._open.add(key)
        found = tuple(dict.fromkeys(self._follow(node, scope)))
        self._open.discard(key)
        (self._known if self._is_uncut(before) else self._draft)[key] = found
        return found

    def _is_uncut(self, before: int) -> bool:
        """Whether an answer, begun when there were BEFORE cuts, was cut short by no circle that began further out.

        One that was holds until the outermost question is answered, and then no more.
        """
        if self._open or self._asked or self._finding:
            return self._cuts == before
        self._draft.clear()
        self._draft_sites.clear()
        return True

    def _follow(self, node: ast.expr, scope: Scope) -> Iterator[Origin]:
        match node:
            case ast.Name(id=name):
                yield from self._named(name, node, scope)
            case ast.Attribute(value=value, attr=key):
                yield from self._held(node, value, key, scope)
            case ast.Call():
                yield from self._called(node, scope)
            case ast.IfExp(body=one, orelse=other):
                yield from (*self.origins(one, scope), *self.origins(other, scope))
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self.origins(value, scope)
            case ast.Subscript(value=value, slice=ast.Constant(value=str() | int() as key)):
                yield from self._held(node, value, key, scope)
            case ast.Subscript(value=value, slice=ast.Name() | ast.Attribute()):
                ends = (end for each, home in self._contents(value, scope) for end in self.origins(each, home))
                made = [end for end in ends if end.call is not None]  # of plain values, which one is the question
                yield from made or [Origin(node, scope)]
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                yield from self.origins(value, scope)
            case _:
                yield Origin(node, scope)

    def _named(self, name: str, node: ast.expr, scope: Scope) -> Iterator[Origin]:
        bound = self.facts.bound.get(id(node))
        stores = [bound] if bound is not None else self.names.stores(name, scope)
        if not stores:
            yield Origin(node, scope)
        for store in stores:
            yield from self._stored(store)

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
                return [each.value if isinstance(each, ast.Constant) else "" for each in parts]  # type: ignore[misc]
        return []

    def _field(self, call: ast.Call, words: list[str], key: str | int) -> ast.expr | None:
        if isinstance(key, int):
            key = words[key] if -len(words) <= key < len(words) else ""
        named = next((each.value for each in call.keywords if each.arg == key), None)
        if named is not None or key not in words or any(isinstance(each, ast.Starred) for each in call.args):
            return named
        at = words.index(key)
        return call.args[at] if at < len(call.args) else None

    def _stored(self, store: Store) -> Iterator[Origin]:
        if store.how == "parameter":
            yield from self._parameter(store)
        elif store.value is None:
            yield Origin(None, store.scope, store)
        elif store.how == "element":
            yield from self._element(store, store.value)
        elif store.index is not None:
            yield from self._unpacked(store, store.value, store.index)
        else:
            for origin in self.origins(store.value, store.scope):
                yield Origin(origin.node, origin.scope, origin.store or store)

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

    def _parameter(self, store: Store) -> Iterator[Origin]:
        function = store.scope
        given = [self._given(call, function, store.name) for call in self.sites(function)]
        for call, argument in given:
            yield from self.origins(argument, call.scope)
        if not any(argument is not None for _, argument in given):
            yield Origin(store.value, function, store)

    def _given(self, call: Call, function: Scope, name: str) -> tuple[Call, ast.expr | None]:
        words = [each.arg for each in function.parameters]
        bound = function.receiver in words[:1] and (
            call.receiver is not None or function.name in ("__init__", "__call__")
        )
        return call, call.argument(name, words.index(name) - (1 if bound else 0))

    def _called(self, node: ast.Call, scope: Scope) -> Iterator[Origin]:
        match node.func:
            case ast.Attribute(value=value, attr=attr) if attr in _SAME and not self.names.resolve(node.func, scope):
                yield from self.origins(value, scope)
                return
            case ast.Attribute(value=ast.Call() as made, attr="apply" | "share_memory"):  # Net().apply(weights_init)
                yield from self.origins(made, scope)
                return
        helper = self.definition(node.func, scope)
        if helper is None and (bodies := self._anonymous(node.func, scope)):
            for body, inside in bodies:
                yield from self.origins(body, inside)
            return
        if helper is None or helper.kind != "function" or not helper.returns:
            yield Origin(node, scope)
            return
        for each in helper.returns:
            yield from self.origins(each.node.value, helper)

    @cached_property
    def _lambdas(self) -> dict[int, Scope]:
        return {id(scope.node): scope for scope in self.facts.scopes if scope.kind == "lambda"}

    def _anonymous(self, called: ast.expr, scope: Scope) -> list[tuple[ast.expr, Scope]]:
        """The bodies of the lambdas that CALLED is a name of, where it is nothing else."""
        if not self._lambdas or not isinstance(called, ast.Name | ast.Attribute) or self.names.resolve(called, scope):
            return []
        ends = [origin.node for origin in self.origins(called, scope)]
        known = [
            (each.body, self._lambdas[id(each)])
            for each in ends
            if isinstance(each, ast.Lambda) and id(each) in self._lambdas
        ]
        return known if len(known) == len(ends) else []

    # functions and classes of the same file

    def definition(self, called: ast.expr, scope: Scope) -> Scope | None:
        """The function, method or class of this file that CALLED stands for."""
        match called:
            case ast.Name(id="cls") if scope.receiver == "cls":  # in a class method
                return scope.host
            case ast.Name(id=name) if found := self.names.definition(name, scope) or self._closure(called, scope):
                return found
            case ast.Attribute() if self.names.links.is_any and (name := self.names.resolve(called, scope)):
                return self.names.links.definition(name, scope)  # utils.save, of a module of this project
            case ast.Attribute(value=value, attr=attr) if attr in self._methods or self.names.links.is_any:
                host = self.instance(value, scope)
                method = self.method(host, attr) if host is not None else None
                return method if method is None or not is_property(method.node) else None  # self.net(x) runs no net()
            case ast.Name() | ast.Attribute() if self._makes_callables and not self.names.resolve(called, scope):
                host = self.instance(called, scope)
                return self.method(host, "__call__") if host is not None else None
        return None

    def _closure(self, called: ast.Name, scope: Scope) -> Scope | None:
        """The function that a function of this file has made: push of push = make_meter(0.9)."""
        stores = self.names.stores(called.id, scope)
        if len(stores) != 1 or stores[0].how != "assign" or not isinstance(stores[0].value, ast.Call):
            return None
        made = self._maker(stores[0].value, stores[0].scope)
        ends = [each.node.value for each in made.returns] if made is not None and made.kind == "function" else []
        found = {id(each): each for end in ends if isinstance(end, ast.Name) and made is not None
                 if (each := made.inner.get(end.id)) is not None and each.kind == "function"}  # fmt: skip
        return next(iter(found.values())) if len(found) == 1 and len(ends) == 1 else None

    def instance(self, node: ast.expr, scope: Scope) -> Scope | None:
        """The class of this file that NODE is, or is an instance of."""
        if isinstance(node, ast.Name) and node.id == scope.receiver and scope.host is not None:
            return scope.host
        if isinstance(node, ast.Name):
            named = self.names.definition(node.id, scope)
            if named is not None and named.kind == "class":
                return named
        for origin in self.origins(node, scope):
            made = self._maker(origin.call, origin.scope) if origin.call is not None else self._annotated(origin)
            made = made or self.noted(origin)
            if made is not None and made.kind == "class":
                return made
        return None

    def _annotated(self, origin: Origin) -> Scope | None:
        """What stands as the annotation of a parameter whose callers are unknown: "Net", Net | None, Optional[Net]."""
        note = origin.node if origin.is_parameter else None
        if isinstance(note, ast.BinOp):
            note = note.left
        if isinstance(note, ast.Subscript):
            note = note.slice
        name = note.value if isinstance(note, ast.Constant) else dotted(note)
        return self.names.definition(name, origin.scope) if isinstance(name, str) and name.isidentifier() else None

    def noted(self, origin: Origin) -> Scope | None:
        """The class of this file that a parameter with neither annotation nor callers is called after."""
        if not origin.is_parameter or origin.node is not None or origin.store is None:
            return None
        used = origin.store.name in self.facts.calls or _has_no_default(origin)
        return self._classes.get(origin.store.name) if used else None

    @cached_property
    def _classes(self) -> dict[str, Scope]:
        """The classes of the file's top level, by the variables that are called after them: tracker, video_tracker."""
        found = {
            each.name: each
            for each in self.facts.scopes
            if each.kind == "class" and each.parent is self.facts.scopes[0]
        }
        snakes = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(): each for name, each in found.items()}
        return {name: each for name, each in snakes.items() if each.name != name}

    def _maker(self, call: ast.Call, scope: Scope) -> Scope | None:
        """What CALL calls; None where that is asked already: in m = m.load() the maker is its own result."""
        if id(call) in self._asked:
            self._cuts += 1
            return None
        self._asked.add(id(call))
        found = self.definition(call.func, scope)
        self._asked.discard(id(call))
        return found

    def method(self, host: Scope, name: str) -> Scope | None:
        """The method NAME of the class HOST or of its bases in this file."""
        return next((base.inner[name] for base in self.lineage(host) if name in base.inner), None)

    def lineage(self, host: Scope) -> list[Scope]:
        """HOST and those of its bases that this file defines."""
        found = [host]
        for each in found:
            for base in each.node.bases if isinstance(each.node, ast.ClassDef) else ():
                scope = self.definition(base, each.parent or each)
                if scope is not None and scope.kind == "class" and scope not in found:
                    found.append(scope)
        return found

    def bases(self, host: Scope) -> set[str]:
        """The real names of all bases of HOST, through the classes of this file."""
        return {
            self.names.resolve(base, each.parent or each)
            for each in self.lineage(host)
            if isinstance(each.node, ast.ClassDef)
            for base in each.node.bases
        }

    def is_whole(self, host: Scope) -> bool:
        """Whether all methods of HOST are known: its own, those of classes of this file, and those of torch."""
        bases = [
            (base, each.parent or each)
            for each in self.lineage(host)
            if isinstance(each.node, ast.ClassDef)
            for base in each.node.bases
        ]
        own = {each.name for each in self.lineage(host)}
        names = (dotted(base) if dotted(base) in own else self.names.resolve(base, scope) for base, scope in bases)
        return all(name in own or name.partition(".")[0] in ("torch", "builtins", "abc", "typing") for name in names)

    @cached_property
    def _makes_callables(self) -> bool:
        """Whether this file makes objects whose own __call__ trains: of transforms and the like nobody asks."""
        classes = (each for each in self.facts.scopes if each.kind == "class" and each.name in self.facts.calls)
        calls = (each.inner["__call__"].calls for each in classes if "__call__" in each.inner)
        return any(call.tail in _TRAINING for each in calls for call in each)

    def _calls_of_objects(self) -> dict[int, tuple[Call, ...]]:
        """The calls of objects of own classes, by the method __call__ that each runs.

        Found once for the whole file; what asks meanwhile sees none, as answers that circles cut short cost too much.
        """
        if self._objects is None:
            self._objects, found = {}, dict[int, list[Call]]()
            for call in (call for calls in self.facts.calls.values() for call in calls):
                if isinstance(call.node.func, ast.Name | ast.Attribute):
                    made = self.definition(call.node.func, call.scope)
                    if made is not None and made.name == "__call__":
                        found.setdefault(id(made), []).append(call)
            self._objects = {key: tuple(calls) for key, calls in found.items()}
        return self._objects

    def sites(self, function: Scope) -> tuple[Call, ...]:
        """The calls of FUNCTION in this file; of a class's __init__, the places where it is made."""
        key = id(function)
        if key in self._sites:
            return self._sites[key]
        if key in self._draft_sites or key in self._finding:
            self._cuts += 1
            return self._draft_sites.get(key, ())
        before = self._cuts
        self._finding.add(key)
        found = self._callers(function)
        self._finding.discard(key)
        (self._sites if self._is_uncut(before) else self._draft_sites)[key] = found
        return found

    def _callers(self, function: Scope) -> tuple[Call, ...]:
        made = function.name == "__init__" and function.host is not None
        name = function.host.name if made and function.host is not None else function.name
        target = function.host if made else function
        if name == "__call__":
            return self._calls_of_objects().get(id(function), ()) if self._makes_callables else ()
        calls = self.facts.calls.get(name, ())
        return tuple(
            call
            for call in calls
            if self.definition(call.node.func, call.scope) is target or self._is_left_to(call, target)
        )

    def _is_left_to(self, call: Call, method: Scope | None) -> bool:
        """Whether CALL on self stands in a base of the class that METHOD is of: it runs METHOD there."""
        base, host = call.scope.host, method.host if method is not None else None
        if base is None or host is None or base is host or dotted(call.receiver) != call.scope.receiver:
            return False
        return base in self.lineage(host)


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


def _has_no_default(origin: Origin) -> bool:
    """Whether a parameter must be given: levels=8 is no Levels."""
    node = origin.scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or origin.store is None:
        return False
    plain = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return origin.store.name in plain[: len(plain) - len(node.args.defaults)]
