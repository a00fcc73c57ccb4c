"""What an expression in the source of a module comes to, without running it: a module, a literal, or lost."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from torchtriage.examine.source.facts import Scope, dotted
from torchtriage.examine.source.parameters.arithmetic import BINARY, COMPARED, LITERAL, MANY, apply
from torchtriage.examine.source.parameters.assembly import PLAIN, Lost, Made, Part, Value, is_cut
from torchtriage.examine.source.parameters.layers import CONTAINERS
from torchtriage.examine.source.parameters.usage import Usage
from torchtriage.examine.source.script import Script

STEPS = 50_000  # statements and elements that are followed for one class


@dataclass(slots=True)
class Frame:
    """A function under way. receiver: the module that it belongs to; owner: the class whose method it is."""

    script: Script
    scope: Scope
    usage: Usage
    variables: dict[str, Value] = field(default_factory=dict)
    receiver: Part | None = None
    owner: Made | None = None


class Evaluation:
    """Expressions; what calls come to is left to the builder."""

    steps = 0
    _works: ClassVar[dict[Any, Callable[..., Value]]] = {}

    def call(self, node: ast.Call, frame: Frame) -> Value:
        raise NotImplementedError

    def find(self, name: str) -> Made | None:
        """The class or function of another of the files that the import NAME is."""
        raise NotImplementedError

    def either(self, node: ast.IfExp, frame: Frame) -> Value:
        """What both ways of NODE come to."""
        raise NotImplementedError

    def lineage(self, made: Made) -> Iterator[Made]:
        """MADE and everything that it inherits from."""
        raise NotImplementedError

    def lost(self, node: ast.AST, frame: Frame, what: str = "", *, module: bool = False) -> Lost:
        """NODE cannot be known; the reason says where it stands."""
        said = what or f"{frame.script.source(node)[:60]} is not known"
        return Lost(f"{frame.script.text.path}:{getattr(node, 'lineno', 1)}: {said}", module=module)

    def value(self, node: ast.expr | None, frame: Frame) -> Value:
        """What NODE comes to in FRAME."""
        if node is None or isinstance(node, ast.Constant):
            return node.value if node is not None else None
        work = next((work for kind, work in self._works.items() if isinstance(node, kind)), Evaluation._computed)
        return work(self, node, frame)

    def _row(self, node: ast.List | ast.Tuple, frame: Frame) -> Value:
        found = list(self.spread(node.elts, frame))
        return tuple(found) if isinstance(node, ast.Tuple) else found

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Value:
        frame.variables[node.target.id] = value = self.value(node.value, frame)
        return value

    def spread(self, nodes: list[ast.expr], frame: Frame) -> Iterator[Value]:
        """The values of NODES, with starred ones spread out; one Lost at the end of what cannot be."""
        for node in nodes:
            if not isinstance(node, ast.Starred):
                yield self.value(node, frame)
                continue
            inside = self.items(self.value(node.value, frame), cut=True)
            yield from inside if inside is not None else [replace(self.lost(node, frame, module=True), rest=True)]

    def items(self, value: Value, *, cut: bool = False) -> list[Value] | None:
        """What a loop over VALUE meets; None where that is not known, or, unless CUT, known only in part."""
        inside = value.own | value.parts if isinstance(value, Part) else value
        if not cut and (is_cut(inside) or (isinstance(value, Part) and any(key.startswith("?") for key in inside))):
            return None
        if isinstance(value, Part) and value.kind in ("Sequential", "ModuleList", "ParameterList"):
            return [*value.own.values(), *value.parts.values()]
        if isinstance(value, Part) and value.kind == "ModuleDict":
            return list(value.parts)
        if isinstance(value, list | tuple | dict | str | range) and len(value) <= MANY:
            return list(value)
        return None

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Binds the names in TARGET, of a loop or an assignment."""
        match target:
            case ast.Name(id=name):
                frame.variables[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                items = self.items(value)
                fits = items is not None and len(items) == len(parts)
                for place, part in enumerate(parts):
                    unknown = PLAIN if value is PLAIN else self.lost(target, frame)
                    self.bind(part, items[place] if fits and items is not None else unknown, frame)

    def _named(self, node: ast.Name | ast.Attribute, frame: Frame) -> Value:
        chain = dotted(node)
        root, _, rest = chain.partition(".")
        if root in frame.variables:
            value = frame.variables[root]
            for word in rest.split(".") if rest else ():
                value = self.attribute(value, word, node, frame)
        elif not chain and isinstance(node, ast.Attribute):
            value = self.attribute(self.value(node.value, frame), node.attr, node, frame)
        else:
            value = self._outer(node, chain, frame)
        return PLAIN if isinstance(value, Lost) and not value.module and frame.usage.is_plain(chain) else value

    def attribute(self, value: Value, word: str, node: ast.expr, frame: Frame) -> Value:
        if isinstance(value, Part):
            try:
                return value.get(word)
            except KeyError:
                value = value.made
        for made in self.lineage(value) if isinstance(value, Made) else ():
            if made.scope is None:
                continue
            stores = made.scope.stores.get(word, [])
            if len(stores) == 1 and stores[0].how == "assign" and stores[0].index is None:
                return self.value(stores[0].value, Frame(made.script, made.scope, frame.usage))
        if isinstance(value, Made) and value.scope is None:
            return Made(f"{value.name}.{word}")
        return PLAIN if value is PLAIN else self.lost(node, frame)

    def _outer(self, node: ast.expr, chain: str, frame: Frame) -> Value:
        """A name from outside the function: a class, a function, an import, or a name that is assigned once."""
        root = chain.partition(".")[0]
        if (made := frame.script.names.definition(root, frame.scope)) is not None and root == chain:
            return Made(made.name, frame.script, made)
        if real := frame.script.names.resolve(node, frame.scope):
            return self.find(real) or Made(real)
        if "." in chain and isinstance(node, ast.Attribute):
            return self.attribute(self.value(node.value, frame), node.attr, node, frame)
        stores = frame.script.names.stores(root, frame.scope)
        if (
            len(stores) == 1
            and stores[0].how == "assign"
            and stores[0].index is None
            and stores[0].scope.kind != "class"
        ):
            known = self.value(stores[0].value, Frame(frame.script, stores[0].scope, frame.usage))
            return known if known is PLAIN or isinstance(known, (*LITERAL, tuple, Made)) else self.lost(node, frame)
        return self.lost(node, frame)

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        keys = [self.value(key, frame) if key is not None else PLAIN for key in node.keys]
        if not all(isinstance(key, str | int) for key in keys):
            return self.lost(node, frame)
        return {key: self.value(value, frame) for key, value in zip(keys, node.values, strict=True)}

    def _comprehended(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Value:
        inner = replace(frame, variables=dict(frame.variables))
        made: list[Value] = []
        pair = ast.Tuple([node.key, node.value], ast.Load()) if isinstance(node, ast.DictComp) else node.elt
        whole = self._rounds(node.generators, pair, inner, made)
        if isinstance(node, ast.DictComp):
            known = whole and all(isinstance(key, str | int) for key, _ in made)
            return dict(made) if known else self.lost(node, frame)
        why = f"{frame.script.source(node)[:60]}: how often is not known"
        return made if whole else [*made, replace(self.lost(node, frame, why, module=True), rest=True)]

    def _rounds(self, clauses: list[ast.comprehension], element: ast.expr, frame: Frame, made: list[Value]) -> bool:
        """Fills MADE; whether all of it is known."""
        if not clauses:
            made.append(self.value(element, frame))
            return len(made) < MANY
        clause, *rest = clauses
        items = self.items(self.value(clause.iter, frame))
        for item in items or ():
            self.steps += 1
            self.bind(clause.target, item, frame)
            truths = [self.truth(test, frame) for test in clause.ifs]
            if self.steps > STEPS or None in truths or (all(truths) and not self._rounds(rest, element, frame, made)):
                return False
        return items is not None

    def _either(self, node: ast.IfExp, frame: Frame) -> Value:
        truth = self.truth(node.test, frame)
        return self.either(node, frame) if truth is None else self.value(node.body if truth else node.orelse, frame)

    def _item(self, node: ast.Subscript, frame: Frame) -> Value:
        value: Value = self.value(node.value, frame)
        key: Value = self.value(node.slice, frame)
        if isinstance(value, Part):
            value = value.parts if isinstance(key, str) else self.items(value)
        place = isinstance(key, int) and isinstance(value, list | tuple) and 0 <= key < len(value) - 1
        if value is PLAIN:
            return PLAIN
        try:
            known = isinstance(value, list | tuple | dict | str) and (place or not is_cut(value))
            return _at(value, key) if known else self.lost(node, frame)
        except (KeyError, IndexError, TypeError):
            return self.lost(node, frame)

    def truth(self, node: ast.expr, frame: Frame) -> bool | None:
        """Whether NODE holds; None where that cannot be told."""
        value = self.value(node, frame)
        if isinstance(value, Part | Made):
            counted = isinstance(value, Part) and value.kind in CONTAINERS
            return bool(self.items(value)) if counted and self.items(value) is not None else None if counted else True
        return None if value is PLAIN or isinstance(value, Lost) or is_cut(value) else bool(value)

    def _computed(self, node: ast.expr, frame: Frame) -> Value:
        """Arithmetic and comparisons, where all in them is literal."""
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                return apply(BINARY.get(type(op)), self.value(left, frame), self.value(right, frame))
            case ast.Compare(left=left, ops=[test], comparators=[right]):
                return apply(COMPARED.get(type(test)), self.value(left, frame), self.value(right, frame))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = self.truth(operand, frame)
                return PLAIN if truth is None else not truth
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return apply(operator.sub, 0, self.value(operand, frame))
            case ast.BoolOp(op=either, values=values):
                return self._logic(isinstance(either, ast.And), [self.value(each, frame) for each in values])
        known = isinstance(node, ast.Lambda | ast.Set | ast.SetComp | ast.Slice | ast.Compare | ast.UnaryOp)
        return PLAIN if known else self.lost(node, frame)

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Value:
        texts = [
            self.value(each.value if isinstance(each, ast.FormattedValue) else each, frame) for each in node.values
        ]
        bare = all(not isinstance(each, ast.FormattedValue) or each.format_spec is None for each in node.values)
        known = bare and all(isinstance(text, str | int) and len(str(text)) < MANY for text in texts)
        return "".join(map(str, texts)) if known else PLAIN

    @staticmethod
    def _logic(every: bool, values: list[Value]) -> Value:
        for value in values:
            if value is PLAIN or isinstance(value, Lost):
                return value
            if bool(value) is not every:
                return value
        return values[-1]


def _at(value: Any, key: Any) -> Value:
    return value[key]


Evaluation._works.update(
    {
        ast.Name | ast.Attribute: Evaluation._named,
        ast.Call: lambda self, node, frame: self.call(node, frame),
        ast.List | ast.Tuple: Evaluation._row,
        ast.Dict: Evaluation._dict,
        ast.ListComp | ast.GeneratorExp | ast.DictComp: Evaluation._comprehended,
        ast.IfExp: Evaluation._either,
        ast.Subscript: Evaluation._item,
        ast.NamedExpr: Evaluation._walrus,
        ast.JoinedStr: Evaluation._text,
    }
)
