"""What a name stands for: seen through imports, aliases and names that have moved."""

from __future__ import annotations

import ast
import builtins
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from torchtriage.examine.detector import CannotSee
from torchtriage.examine.source.facts import Facts, Scope, Store, dotted
from torchtriage.examine.source.linked import Links


@cache
def table() -> dict[str, Any]:
    """The engine's own lore, as data."""
    return tomllib.loads((Path(__file__).parent / "names.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The name under which a thing is known today: torch.cuda.amp.GradScaler → torch.amp.GradScaler."""
    moved: dict[str, str] = table()["moved"]
    if name in moved:
        return moved[name]
    words = name.split(".")
    if words[:3] == ["torch", "nn", "modules"] and len(words) > 4:
        return canonical(".".join(["torch", "nn", *words[4:]]))
    for length in range(len(words) - 1, 0, -1):
        head = ".".join(words[:length])
        if head in moved:
            return canonical(".".join([moved[head], *words[length:]]))
    return name


@lru_cache(maxsize=4096)
def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether NAME is one of PATTERNS, where "*" stands for one class: a word with a capital, in the same module."""
    for pattern in patterns:
        if "*" not in pattern:
            if name == pattern:
                return True
            continue
        head, _, end = pattern.partition("*")
        word = name.removeprefix(head).removesuffix(end)
        if name.startswith(head) and name.endswith(end) and "." not in word and (word[:1].isupper() or not word):
            return True
    return False


def _owner_of(name: str) -> str | None:
    """The framework that the thing NAME belongs to."""
    owners: dict[str, str] = table()["frameworks"]
    words = name.split(".")
    heads = (".".join(words[:length]) for length in range(len(words), 0, -1))
    return next((owners[head] for head in heads if head in owners), None)


# The most entangled of 2,500 public files needs 120,000; this is about two seconds.
MOST = 1_000_000


class Names:
    """The names of one file."""

    def __init__(self, facts: Facts, links: Links) -> None:
        self.facts, self.links = facts, links
        self._asked = 0
        self._imported: dict[tuple[int, str], str] = {}
        self._framework: list[str | None] = []

    def count(self) -> None:
        """Notes one question about the file; raises CannotSee when there were more than any file needs.

        Functions that call each other in circles, or many branches in a row, have more ways than can be followed.
        """
        self._asked += 1
        if self._asked > MOST:
            raise CannotSee("the code is too entangled to be followed", "Check a smaller part of it.")

    def home(self, name: str, scope: Scope) -> Scope | None:
        """The scope that binds NAME as seen from SCOPE; None for builtins and what a star import may have brought."""
        inside: Scope | None = scope
        while inside is not None:
            if name in inside.stores and name not in inside.outside and (inside is scope or inside.kind != "class"):
                return inside
            inside = inside.parent
        return None

    def stores(self, name: str, scope: Scope) -> list[Store]:
        """Every store to NAME in the scope that binds it."""
        home = self.home(name, scope)
        return home.stores[name] if home else []

    def resolve(self, node: ast.AST | None, scope: Scope) -> str:
        """The real dotted name of a name or attribute chain that starts at an import or a builtin, else ""."""
        self.count()
        name = self.spelled(node, scope)
        return canonical(name) if name else ""

    def spelled(self, node: ast.AST | None, scope: Scope) -> str:
        """The same by the name that the code says, which may be one of before."""
        chain = dotted(node)
        if not chain:
            return ""
        root, dot, rest = chain.partition(".")
        real = self._root(root, scope)
        return real + dot + rest if real else ""

    def _root(self, name: str, scope: Scope) -> str:
        key = (id(scope), name)
        if key not in self._imported:
            self._imported[key] = self._import(name, scope)
        return self._imported[key]

    def _import(self, name: str, scope: Scope) -> str:
        home = self.home(name, scope)
        if home is None:
            return f"builtins.{name}" if hasattr(builtins, name) else self.links.star(name, scope)
        found = [store.imported for store in home.stores[name] if store.how == "import"]
        return next((each for each in found if each.startswith("torch")), found[-1] if found else "")

    def definition(self, name: str, scope: Scope) -> Scope | None:
        """The function or class that NAME stands for: of this file, when every store to it is a definition.

        Or of another file of the project, when it is imported from there.
        """
        home = self.home(name, scope)
        if home is None:
            starred = self.links.star(name, scope)
            return self.links.definition(starred, scope) if starred else self.links.beside(name, scope)
        stores = home.stores[name]
        if all(store.how == "import" for store in stores):
            return self.links.definition(stores[-1].imported, home)
        return home.inner.get(name) if all(store.how == "define" for store in stores) else None

    def framework(self) -> str | None:
        """The framework that owns the training of this file, by its imports.

        One that is imported where it is there or wanted (`try: from apex import amp`) owns a training only if something
        of it is called, or inherited from, whatever the options say.
        """
        if not self._framework:
            self._framework.append(self._owner())
        return self._framework[0]

    def _owner(self) -> str | None:
        for name in self.facts.imports:
            owner = _owner_of(canonical(name))
            if owner is not None and (name in self.facts.required or self._is_relied_on(owner)):
                return owner
        return None

    def _is_relied_on(self, owner: str) -> bool:
        """Whether code that no condition stands around calls something of OWNER, or inherits from it."""
        calls = ((call.node.func, call) for calls in self.facts.calls.values() for call in calls)
        used = [(node, call.scope) for node, call in calls if not any(each.kind == "arm" for each in call.path)]
        used += [
            (base, scope)
            for scope in self.facts.scopes
            if isinstance(scope.node, ast.ClassDef)
            for base in scope.node.bases
        ]
        return any(_owner_of(self.resolve(node, scope)) == owner for node, scope in used)
