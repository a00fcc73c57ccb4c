"""What one walk over a file writes down: blocks, scopes, calls and stores, flat and in the order of evaluation."""

from __future__ import annotations

import ast
from typing import Literal, TypeAlias

from msgspec import Struct

Kind = Literal["body", "arm", "loop", "with", "try", "handler", "rest"]
Leaves = Literal["", "loop", "function"]
How = Literal["assign", "augment", "element", "enter", "parameter", "import", "define", "delete"]


class Block(Struct, eq=False):
    """Statements that run together.

    kind: a "body" of a function, class or module; an "arm" of an if or match; a "loop"'s body; under "with"; a "try"
    or one of its "handler"s; the "rest" (else and finally clauses, which run after what stands before them).
    owner: the statement it belongs to. path: all blocks from the scope's body down to this one.
    leaves: whether its last statement leaves the loop or the function.
    """

    kind: Kind
    owner: ast.AST
    path: tuple[Block, ...] = ()
    leaves: Leaves = ""


class Scope(Struct, eq=False):
    """A module, class, function or lambda. Comprehensions count as part of the scope they stand in.

    actions: the calls and stores of its own body, in order of evaluation. stores: the same stores by name, where
    "self.x" and "x[]" are names too. attributes: of a class, the stores to self.x in all its methods.
    receiver: what a method calls itself ("self"). host: the class that RECEIVER belongs to.
    """

    kind: Literal["module", "class", "function", "lambda"]
    node: ast.AST
    name: str
    parent: Scope | None
    body: Block
    actions: list[Call | Store] = []
    stores: dict[str, list[Store]] = {}
    attributes: dict[str, list[Store]] = {}
    inner: dict[str, Scope] = {}
    returns: list[Return] = []
    outside: set[str] = set()
    parameters: tuple[ast.arg, ...] = ()
    receiver: str = ""
    host: Scope | None = None

    @property
    def calls(self) -> list[Call]:
        return [action for action in self.actions if isinstance(action, Call)]


class Call(Struct, eq=False):
    """One call. tail: the last word of what is called ("step" in optimizer.step()). order: counts evaluations."""

    node: ast.Call
    tail: str
    scope: Scope
    block: Block
    order: int
    statement: ast.stmt

    @property
    def path(self) -> tuple[Block, ...]:
        return self.block.path

    @property
    def receiver(self) -> ast.expr | None:
        """What the method is called on; None for a plain function."""
        return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None

    @property
    def arguments(self) -> list[ast.expr]:
        return [*self.node.args, *(keyword.value for keyword in self.node.keywords)]

    def argument(self, name: str, position: int | None = None) -> ast.expr | None:
        """The argument of that NAME, or at that POSITION from 0; None when it is not given."""
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is not None and 0 <= position < len(self.node.args):
            return self.node.args[position]
        return None


class Store(Struct, eq=False):
    """A name that gets a value.

    value: the expression it gets, or (for how="element") what it is an element of; index: its place when the value is
    unpacked. imported: the dotted name of an import.
    """

    name: str
    how: How
    value: ast.expr | None
    index: int | None
    scope: Scope
    block: Block
    order: int
    node: ast.AST
    imported: str = ""

    @property
    def path(self) -> tuple[Block, ...]:
        return self.block.path


class Return(Struct, eq=False):
    """One return statement and where it stands."""

    node: ast.Return
    block: Block
    order: int

    @property
    def path(self) -> tuple[Block, ...]:
        return self.block.path


Action: TypeAlias = Call | Store


class Facts(Struct, eq=False):
    """All scopes of a file, the module first, and its calls by their last word.

    imports: the dotted names of all imports, required: of those that no condition and no try stands around, and
    aliases: the stores that they make; stars: the modules of those that
    are imported with a star. aside: the words by which a thing may be used without being called, namely attributes
    that are only read or written, and strings (getattr). bound: of a name that a comprehension binds, by the id of
    its node, the store that says what the comprehension runs over.
    """

    scopes: list[Scope] = []
    calls: dict[str, list[Call]] = {}
    stars: list[str] = []
    imports: list[str] = []
    required: set[str] = set()
    aliases: list[Store] = []
    aside: set[str] = set()
    bound: dict[int, Store] = {}


def dotted(node: ast.AST | None) -> str:
    """The words of a name, of a chain of attributes, or of entries under a key that is written out: "a.b.c".

    state["net"] is "state.net", nets[0] is "nets.0"; an empty string for anything else.
    """
    words: list[str] = []
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=node, attr=word):
                words.append(word)
            case ast.Subscript(value=node, slice=ast.Constant(value=str() | int() as key)):
                words.append(str(key))
            case _:
                return ""
    words.append(node.id)
    return ".".join(reversed(words)) if len(words) > 1 else node.id
