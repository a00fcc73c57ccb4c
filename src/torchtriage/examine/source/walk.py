"""The one walk over a file's tree: every statement and expression once, in the order in which they are evaluated."""

from __future__ import annotations

import ast

from torchtriage.examine.source.facts import Block, Facts, Return, dotted
from torchtriage.examine.source.notes import Notes, parameters

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def walk(tree: ast.Module) -> Facts:
    """The facts of TREE; raises RecursionError for code that is nested deeper than the interpreter's stack."""
    return _Walk(tree).facts


class _Walk(Notes):
    """What each kind of statement does to the notes."""

    def function(self, node: _Function) -> None:
        for expression in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.value(expression)
        scope = self.open("function", node, node.name)
        scope.parameters = parameters(node.args)
        static = any(dotted(each) == "staticmethod" for each in node.decorator_list)
        if self.scope.kind == "class" and scope.parameters and not static:
            scope.receiver, scope.host = scope.parameters[0].arg, self.scope
        self.scope.inner[node.name] = scope
        self.store(node.name, "define", None, node)
        self.enter(scope, node.body)

    def clas(self, node: ast.ClassDef) -> None:
        for expression in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.value(expression)
        scope = self.open("class", node, node.name)
        scope.receiver, scope.host = "", None
        self.scope.inner[node.name] = scope
        self.store(node.name, "define", None, node)
        self.enter(scope, node.body)

    def assign(self, node: ast.Assign) -> None:
        self.value(node.value)
        for target in node.targets:
            self.target(target, "assign", node.value, node)

    def annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.value(node.value)
            self.target(node.target, "assign", node.value, node)

    def augment(self, node: ast.AugAssign) -> None:
        self.value(node.value)
        self.target(node.target, "augment", node.value, node)

    def branch(self, node: ast.If) -> None:
        self.value(node.test)
        self.under("arm", node, node.body)
        self.under("arm", node, node.orelse)

    def loop(self, node: ast.For | ast.AsyncFor) -> None:
        self.value(node.iter)
        outer = self.block
        self.block = Block("loop", node)
        self.block.path = (*outer.path, self.block)
        self.target(node.target, "element", node.iter, node)
        self.statements(node.body)
        self.block = outer
        self.under("rest", node, node.orelse)

    def repeat(self, node: ast.While) -> None:
        self.value(node.test)
        self.under("loop", node, node.body)
        self.under("rest", node, node.orelse)

    def context(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.value(item.context_expr)
            if item.optional_vars is not None:
                self.target(item.optional_vars, "enter", item.context_expr, node)
        self.under("with", node, node.body)

    def attempt(self, node: ast.Try) -> None:
        self.under("try", node, node.body)
        for handler in node.handlers:
            self.under("handler", node, handler.body)
        self.under("rest", node, node.orelse)
        self.under("rest", node, node.finalbody)

    def match(self, node: ast.Match) -> None:
        self.value(node.subject)
        for case in node.cases:
            self.under("arm", node, case.body)

    def returned(self, node: ast.Return) -> None:
        if node.value is not None:
            self.value(node.value)
        self.order += 1
        self.scope.returns.append(Return(node, self.block, self.order))

    def imported(self, node: ast.Import) -> None:
        for alias in node.names:
            self.bring(alias.name)
            whole = alias.asname or alias.name.partition(".")[0]
            self.store(whole, "import", None, node, alias.name if alias.asname else whole)

    def imported_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        within = module if module.endswith(".") else f"{module}."
        for alias in node.names:
            self.bring(within + alias.name)
            if alias.name == "*":
                self.facts.stars.append(module)
            else:
                self.store(alias.asname or alias.name, "import", None, node, within + alias.name)

    def outside(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.outside.update(node.names)

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self.target(target, "delete", None, node)


_Walk.statement_visits = {
    ast.FunctionDef: _Walk.function,
    ast.AsyncFunctionDef: _Walk.function,
    ast.ClassDef: _Walk.clas,
    ast.Assign: _Walk.assign,
    ast.AnnAssign: _Walk.annotated,
    ast.AugAssign: _Walk.augment,
    ast.If: _Walk.branch,
    ast.For: _Walk.loop,
    ast.AsyncFor: _Walk.loop,
    ast.While: _Walk.repeat,
    ast.With: _Walk.context,
    ast.AsyncWith: _Walk.context,
    ast.Try: _Walk.attempt,
    ast.TryStar: _Walk.attempt,
    ast.Match: _Walk.match,
    ast.Return: _Walk.returned,
    ast.Import: _Walk.imported,
    ast.ImportFrom: _Walk.imported_from,
    ast.Global: _Walk.outside,
    ast.Nonlocal: _Walk.outside,
    ast.Delete: _Walk.delete,
}
