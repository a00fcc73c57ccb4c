"""What the use of a name tells of it: a number or a word is no module and no parameter."""

from __future__ import annotations

import ast

from torchtriage.examine.source.facts import Scope, dotted
from torchtriage.examine.source.parameters.layers import NESTING
from torchtriage.examine.source.script import Script

_NUMBERS = frozenset({"int", "float", "bool", "str", "bytes", "complex"})
_COUNTING = ast.FloorDiv | ast.Mod | ast.Pow | ast.Div | ast.Sub
_SETTINGS = frozenset({"config", "cfg", "conf", "args", "opt", "opts", "hparams", "settings"})


class Usage:
    """The names that one function uses as numbers or words, and the attributes that its class calls."""

    def __init__(self, script: Script, function: Scope | None) -> None:
        self.script, self.function = script, function
        self._plain: set[str] = set()
        self._called: set[str] = set()
        node = function.node if function is not None else None
        host = function.host.node if function is not None and function.host is not None else None
        for each in ast.walk(node) if node is not None else ():
            self._look(each)
        for each in ast.walk(host) if host is not None else ():
            if isinstance(each, ast.Call):
                self._called.add(dotted(each.func).rpartition(".")[2])

    def is_plain(self, chain: str) -> bool:
        """Whether CHAIN is used as a number, or is a setting that its class never calls."""
        words = chain.removeprefix("self.").split(".")
        return chain in self._plain or (words[0] in _SETTINGS and words[-1] not in self._called)

    @staticmethod
    def is_setting(chain: str) -> bool:
        """Whether CHAIN starts at what is called like the settings of a program, which may hold anything."""
        return chain.removeprefix("self.").partition(".")[0] in _SETTINGS

    def _look(self, node: ast.AST) -> None:
        match node:
            case ast.arg(arg=name, annotation=annotation) if annotation is not None and _is_plain(annotation):
                self._plain.add(name)
            case ast.Call() if self._takes_numbers(node):
                self._add(*node.args, *(keyword.value for keyword in node.keywords))
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _COUNTING):
                self._add(left, right)
            case ast.Compare(left=left, ops=ops, comparators=others):
                if not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops):
                    self._add(left, *others)

    def _takes_numbers(self, node: ast.Call) -> bool:
        name = self.script.names.resolve(node.func, self.function) if self.function is not None else ""
        head, _, last = name.rpartition(".")
        layer = head == "torch.nn" and last[:1].isupper() and last not in NESTING | {"Parameter", "Module"}
        return name == "builtins.range" or name in ("torch.zeros", "torch.ones", "torch.randn", "torch.empty") or layer

    def _add(self, *nodes: ast.expr) -> None:
        for node in nodes:
            if isinstance(node, ast.BinOp):
                self._add(node.left, node.right)
            elif isinstance(node, ast.Tuple | ast.List):
                self._add(*node.elts)
            elif chain := dotted(node):
                self._plain.add(chain)


def _is_plain(annotation: ast.expr) -> bool:
    """int, "float", bool | None, Optional[str], tuple[int, ...]."""
    names = {each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)}
    names |= {
        each.value for each in ast.walk(annotation) if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    around = {"Optional", "Union", "tuple", "list", "Tuple", "List", "Sequence", "dict", "Dict", "Literal", "typing"}
    literal = any(isinstance(each, ast.Name) and each.id == "Literal" for each in ast.walk(annotation))
    return literal or (bool(names & _NUMBERS) and names <= _NUMBERS | around)
