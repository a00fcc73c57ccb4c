"""How facts are written down: where the walk stands, what it evaluates there, and the names that get a value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from torchtriage.examine.source.facts import Block, Call, Facts, How, Kind, Leaves, Scope, Store, dotted

_LEAVERS: dict[type[ast.stmt], Leaves] = {
    ast.Return: "function",
    ast.Raise: "function",
    ast.Continue: "loop",
    ast.Break: "loop",
}


class Notes:
    """The facts so far, and the scope, block, statement and number of evaluations at which the walk stands."""

    statement_visits: ClassVar[dict[type[ast.AST], Callable[[Any, Any], None]]] = {}

    def __init__(self, tree: ast.Module) -> None:
        self.facts = Facts()
        self.order = 0
        self.block = Block("body", tree)
        self.block.path = (self.block,)
        self.module = self.scope = Scope("module", tree, "", None, self.block)
        self.statement: ast.stmt = ast.Pass()
        self.bound: dict[str, Store] = {}
        self.facts.scopes.append(self.scope)
        self.statements(tree.body)

    # blocks and scopes

    def statements(self, body: Iterable[ast.stmt]) -> None:
        statement = None
        for statement in body:
            self.statement = statement
            visit = self.statement_visits.get(type(statement))
            if visit is not None:
                visit(self, statement)
            else:
                self.children(statement)
        self.block.leaves = _LEAVERS.get(type(statement), "") if statement is not None else ""

    def under(self, kind: Kind, owner: ast.AST, body: list[ast.stmt]) -> None:
        if not body:
            return
        outer = self.block
        self.block = Block(kind, owner)
        self.block.path = (*outer.path, self.block)
        self.statements(body)
        self.block = outer

    def enter(self, scope: Scope, body: list[ast.stmt]) -> None:
        saved = self.scope, self.block, self.statement
        self.facts.scopes.append(scope)
        self.scope, self.block = scope, scope.body
        for parameter in scope.parameters:
            self.store(parameter.arg, "parameter", parameter.annotation, parameter)
        self.statements(body)
        self.scope, self.block, self.statement = saved

    def open(self, kind: Any, node: ast.AST, name: str) -> Scope:
        body = Block("body", node)
        body.path = (body,)
        scope = Scope(kind, node, name, self.scope, body)
        scope.receiver, scope.host = self.scope.receiver, self.scope.host
        return scope

    # expressions

    def value(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name):
            if self.bound and node.id in self.bound:
                self.facts.bound[id(node)] = self.bound[node.id]
            return
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                self.facts.aside.add(node.value)
        elif isinstance(node, ast.Attribute):
            self.facts.aside.add(node.attr)
            self.value(node.value)
        elif isinstance(node, ast.Call):
            self.call(node)
        else:
            visit = _EXPRESSIONS.get(type(node))
            if visit is not None:
                visit(self, node)
            else:
                self.children(node)

    def children(self, node: ast.AST) -> None:
        for name in node._fields:
            child = getattr(node, name, None)
            if isinstance(child, ast.expr):
                self.value(child)
            elif isinstance(child, list):
                for each in child:
                    if isinstance(each, ast.expr):
                        self.value(each)

    def call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute):
            self.value(called.value)
            tail = called.attr
        elif isinstance(called, ast.Name):
            if self.bound:
                self.value(called)
            tail = called.id
        else:
            self.value(called)
            tail = ""
        for argument in node.args:
            self.value(argument)
        for keyword in node.keywords:
            self.value(keyword.value)
        self.order += 1
        made = Call(node, tail, self.scope, self.block, self.order, self.statement)
        self.scope.actions.append(made)
        self.facts.calls.setdefault(tail, []).append(made)

    def bring(self, name: str) -> None:
        """Writes down the import of NAME."""
        self.facts.imports.append(name)
        if not any(each.kind in ("arm", "try", "handler") for each in self.block.path):
            self.facts.required.add(name)

    def anonymous(self, node: ast.Lambda) -> None:
        scope = self.open("lambda", node, "")
        scope.parameters = parameters(node.args)
        self.enter(scope, [ast.copy_location(ast.Expr(node.body), node.body)])

    def comprehension(self, node: Any) -> None:
        outer = self.bound
        for each in node.generators:
            self.value(each.iter)
            self.bound = {**self.bound, **self.bindings(each)}
            for test in each.ifs:
                self.value(test)
        for part in ("elt", "key", "value"):
            if (expression := getattr(node, part, None)) is not None:
                self.value(expression)
        self.bound = outer

    def bindings(self, over: ast.comprehension) -> dict[str, Store]:
        """The names that a comprehension binds for itself, as a loop binds them: no name of the scope it stands in."""
        parts: list[tuple[ast.expr, int | None]] = [(over.target, None)]
        if isinstance(over.target, ast.Tuple | ast.List):
            parts = [(each, place) for place, each in enumerate(over.target.elts)]
        at = self.scope, self.block, self.order, over
        names = ((each.id, place) for each, place in parts if isinstance(each, ast.Name))
        return {name: Store(name, "element", over.iter, place, *at) for name, place in names}

    def named(self, node: ast.NamedExpr) -> None:
        self.value(node.value)
        self.target(node.target, "assign", node.value, node)

    # stores

    def target(self, node: ast.expr, how: How, value: ast.expr | None, by: ast.AST, index: int | None = None) -> None:
        match node:
            case ast.Name(id=name):
                self.store(name, how, value, by, index=index)
            case ast.Attribute():
                self.facts.aside.add(node.attr)
                self.value(node.value)
                self.store(dotted(node) or f"?.{node.attr}", how, value, by, index=index)
            case ast.Subscript():
                self.value(node.value)
                self.value(node.slice)
                self.store(f"{dotted(node.value)}[]", how, value, by, index=index)
                if name := dotted(node):  # state["net"] = … names a thing as state.net = … does
                    self.keep(Store(name, how, value, index, self.scope, self.block, self.order, by))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for place, part in enumerate(parts):
                    self.target(part, how, value, by, place)
            case ast.Starred(value=rest):
                self.target(rest, how, None, by)

    def store(
        self,
        name: str,
        how: How,
        value: ast.expr | None,
        by: ast.AST,
        imported: str = "",
        index: int | None = None,
    ) -> None:
        self.order += 1
        made = Store(name, how, value, index, self.scope, self.block, self.order, by, imported)
        self.scope.actions.append(made)
        if imported:
            self.facts.aliases.append(made)
        self.keep(made)

    def keep(self, made: Store) -> None:
        """Puts a store under its name, to be looked up."""
        home = self.module if made.name in self.scope.outside else self.scope
        home.stores.setdefault(made.name, []).append(made)
        root, _, attribute = made.name.partition(".")
        if attribute and root == self.scope.receiver and self.scope.host is not None:
            self.scope.host.attributes.setdefault(attribute, []).append(made)


def parameters(arguments: ast.arguments) -> tuple[ast.arg, ...]:
    """All parameters of a function, *args and **kwargs last."""
    starred = (each for each in (arguments.vararg, arguments.kwarg) if each is not None)
    return (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred)


_EXPRESSIONS: dict[type[ast.AST], Callable[[Notes, Any], None]] = {
    ast.Lambda: Notes.anonymous,
    ast.ListComp: Notes.comprehension,
    ast.SetComp: Notes.comprehension,
    ast.DictComp: Notes.comprehension,
    ast.GeneratorExp: Notes.comprehension,
    ast.NamedExpr: Notes.named,
}
