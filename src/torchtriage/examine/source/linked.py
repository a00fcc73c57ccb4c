"""Other files of the same project, read when one imports them: what the things are that it takes from there."""

from __future__ import annotations

import ast
import os
import re
from codecs import BOM_UTF8
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from torchtriage.examine.confinement import leads_out
from torchtriage.examine.source.facts import Facts, Scope, dotted
from torchtriage.examine.source.project import file_below, folders_of_project, is_module, sources_of_project
from torchtriage.examine.source.text import Definition, Elsewhere, Text, UnreadableError, definitions
from torchtriage.examine.source.walk import walk

_DEEP = 4  # from one file's import to another's: a package's __init__ that hands on what its parts define
_LARGEST = 500_000  # bytes
_REMEMBERED = 128
_FOREIGN = frozenset({"torch", "numpy", "builtins"})  # also where they are themselves what is examined


class Linked:
    """A file that another one imports. Of it only the functions and classes that are asked for are parsed.

    Every line of theirs is Elsewhere.
    """

    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.content = path, data
        self.data = data.removeprefix(BOM_UTF8)
        self._parts: dict[str, Scope | None] = {}
        self._mentions: dict[re.Pattern[bytes], bool] = {}

    def mentions(self, words: re.Pattern[bytes]) -> bool:
        """Whether one of the WORDS stands anywhere in it; kept, as every file that imports it asks the same."""
        if words not in self._mentions:
            self._mentions[words] = words.search(self.data) is not None
        return self._mentions[words]

    @cached_property
    def tree(self) -> ast.Module | None:
        """The whole file; None where it is no Python."""
        try:
            return Text(self.path.as_posix(), self.content).parse()
        except UnreadableError:
            return None

    @cached_property
    def definitions(self) -> list[Definition]:
        """Every function and class of the file, those around others first."""
        return definitions(self.tree) if self.tree is not None else []

    @cached_property
    def head(self) -> Scope | None:
        """The module with its imports alone."""
        return self._read(b"\n".join([*_IMPORT.findall(self.data), b""]), 0)

    def imported(self, name: str) -> str:
        """What NAME stands for where it is imported once, at the top."""
        stores = self.head.stores.get(name, ()) if self.head is not None else ()
        return stores[0].imported if len(stores) == 1 else ""

    @cached_property
    def stars(self) -> tuple[str, ...]:
        """The modules that it imports everything from, as it names them."""
        return tuple(found.decode() for found in _STAR.findall(self.data))

    @cached_property
    def imports(self) -> tuple[str, ...]:
        """The dotted names that it imports at the top."""
        stores = self.head.stores.values() if self.head is not None else ()
        return (*(store.imported for each in stores for store in each if store.imported), *self.stars)

    def module(self, name: str) -> Scope | None:
        """The module as if it held the function or class NAME alone, with its imports; None where NAME may be more."""
        if name not in self._parts:
            self._parts[name] = self._part(name.encode())
        return self._parts[name]

    def _part(self, name: bytes) -> Scope | None:
        found = [*re.finditer(_DEFINED % re.escape(name), self.data, re.M)]
        if len(found) != 1 or self._is_bound_again(name, found[0].start()):
            return None
        start = self._with_decorators(found[0].start())
        scope = self._read(self.data[start : found[0].end()], self.data.count(b"\n", 0, start))
        if scope is None or self.head is None or any(not _is_plain(each) for each in scope.inner.values()):
            return None
        scope.stores.update({word: stores for word, stores in self.head.stores.items() if word not in scope.stores})
        return scope

    def _is_bound_again(self, name: bytes, start: int) -> bool:
        """Whether NAME, which is defined at START, may stand for something else: or START is inside of a text."""
        before = self.data[:start]
        if before.count(b'"""') % 2 or before.count(b"'''") % 2:
            return True
        return re.search(_BOUND.replace(b"NAME", re.escape(name)), self.data, re.M) is not None

    def _with_decorators(self, start: int) -> int:
        """Where the decorators of the definition at START begin: in the lines right above it."""
        first = at = start
        while at > 0:
            above = self.data.rfind(b"\n", 0, at - 1) + 1
            line = self.data[above:at].strip()
            if not line:
                break
            if line.startswith(b"@") and self.data[above:at].startswith(b"@"):
                first = above
            at = above
        return first

    def _read(self, block: bytes, first: int) -> Scope | None:
        """The module that BLOCK is, which starts behind line FIRST."""
        path = self.path.as_posix()
        try:
            tree = Text(path, block).parse()
            for node in ast.walk(tree):
                if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword | ast.excepthandler):
                    node.lineno = Elsewhere(node.lineno + first, path)
                    node.end_lineno = Elsewhere((node.end_lineno or node.lineno) + first, path)
            return walk(tree).scopes[0]
        except (UnreadableError, RecursionError):
            return None


# A definition up to the next line that begins at the margin and closes no bracket.
_DEFINED = rb"^(?:async def|def|class) %s\b[^\n]*\n(?:(?:[ \t#)\]}][^\n]*)?\r?\n)*(?:[ \t)][^\n]*\Z)?"
# What else may give the name a value: a definition further in, an assignment, an import, a star.
_BOUND = (
    rb"^[ \t]+(?:async def|def|class) NAME\b|^[ \t]*NAME[ \t]*(?::[^=\n]*)?=(?!=)|^[ \t]*global [^\n]*\bNAME\b"
    rb"|^[ \t]*(?:from|import)\b[^\n]*\bNAME\b|^[ \t]*from\b[^\n]*\bimport[ \t]*\*"
)
# Decorators that leave what a call gives as it is.
_PLAIN = frozenset(
    {"no_grad", "inference_mode", "enable_grad", "contextmanager", "dataclass", "compile", "cache", "lru_cache"}
)
_AT_TOP = rb"^(?:(?:async def|def|class) %s\b|%s[ \t]*(?::[^=\n]*)?=(?!=))"
_STAR = re.compile(rb"^from[ \t]+([\w.]+)[ \t]+import[ \t]*\*", re.M)
_IMPORT = re.compile(rb"^(?:from[ \t]+[\w.]+[ \t]+import[ \t]*\([^)]*\)|(?:from|import)[ \t][^\n(;\\]*)", re.M)


def _is_plain(scope: Scope) -> bool:
    """Whether SCOPE has no decorator but those."""
    words = (
        dotted(each.func if isinstance(each, ast.Call) else each) for each in getattr(scope.node, "decorator_list", ())
    )
    return all(word.rpartition(".")[2] in _PLAIN for word in words)


class Links:
    """What the names mean that the file PATH imports from files beside it; nothing where PATH is no file.

    used: the files that were looked into. methods: the names in the classes that were found there. absent: where a
    module or package was looked for, and was not.
    """

    def __init__(self, path: str, facts: Facts, *, trains: bool) -> None:
        """TRAINS: whether the file does what other files can have a part in; else nothing is read."""
        self.path, self.facts, self.trains = path, facts, trains
        self.used: dict[Path, Linked] = {}
        self.methods: set[str] = set()
        self.absent: list[Path] = []
        self._homes: dict[int, Path] = {}
        self._known: dict[tuple[str, Path], Scope | None] = {}
        self._folders: dict[tuple[str, Path], Path | None] = {}
        self._modules: dict[tuple[str, Path], tuple[Path, list[str]] | None] = {}

    @cached_property
    def own(self) -> Path | None:
        path = Path(self.path)
        return path if self.trains and path.suffix == ".py" and path.is_file() else None

    @cached_property
    def is_any(self) -> bool:
        """Whether this file imports anything from a file beside it."""
        own = self.own
        return own is not None and any(self._module(name, own) is not None for name in self.facts.imports)

    def star(self, name: str, scope: Scope) -> str:
        """What NAME, which nothing in the file of SCOPE binds, is by `from … import *` of a file of this project.

        The dotted name of what that file imports, or of what it defines itself; "" where no such file tells, and for
        names with a leading underscore, which a star leaves out.
        """
        if not self.stars or name.startswith("_") or self._home(scope) is not None or self.own is None:
            return ""
        for module in self.stars:
            if found := self._exported(module, name, self.own, 0):
                return found
        return ""

    @cached_property
    def stars(self) -> tuple[str, ...]:
        """The modules of this project that the file imports everything from."""
        own = self.own
        return tuple(each for each in self.facts.stars if own is not None and self._whole(each, own) is not None)

    @cached_property
    def unknown_stars(self) -> tuple[str, ...]:
        """The modules that the file imports everything from, and which may bring anything: they are not all at hand."""
        own = self.own
        return tuple(each for each in self.facts.stars if own is None or not self._is_whole(each, own, 0))

    def _is_whole(self, module: str, importer: Path, deep: int) -> bool:
        file = self._whole(module, importer) if deep < _DEEP else None
        return file is not None and all(self._is_whole(each, file.path, deep + 1) for each in file.stars)

    def _whole(self, module: str, importer: Path) -> Linked | None:
        """The file that MODULE, as IMPORTER sees it, is as a whole."""
        found = self._module(module, importer)
        return self._file(found[0]) if found is not None and not any(found[1]) else None

    def _exported(self, module: str, name: str, importer: Path, deep: int) -> str:
        file = self._whole(module, importer) if deep < _DEEP else None
        if file is None:
            return ""
        within, word = module if module.endswith(".") else f"{module}.", re.escape(name.encode())
        if re.search(_AT_TOP % (word, word), file.data, re.M):
            return within + name
        if imported := file.imported(name):
            return _as_seen(imported, within, file.path)
        further = (self._exported(each, name, file.path, deep + 1) for each in file.stars)
        return next((_as_seen(each, within, file.path) for each in further if each), "")

    def file(self, name: str, importer: Path) -> tuple[Linked, list[str]] | None:
        """The file in which the dotted NAME begins as the file IMPORTER sees it, and the words that are left of it."""
        found = self._module(name, importer)
        file = self._file(found[0]) if found is not None else None
        return (file, [each for each in found[1] if each]) if found is not None and file is not None else None

    def shown(self, path: Path) -> str:
        """PATH as the user named the files: from the working folder where the one examined was named so."""
        return path.as_posix() if Path(self.path).is_absolute() else Path(os.path.relpath(path)).as_posix()

    def definition(self, name: str, scope: Scope) -> Scope | None:
        """The function or class that the imported NAME, "utils.save" or ".utils.save", is as seen from SCOPE."""
        if name.partition(".")[0] in _FOREIGN or self.own is None or not self.is_any:
            return None
        return self._find(name, self._home(scope) or self.own, 0)

    def _home(self, scope: Scope) -> Path | None:
        while scope.parent is not None:
            scope = scope.parent
        return self._homes.get(id(scope))

    def _find(self, name: str, importer: Path, deep: int) -> Scope | None:
        key = (name, importer)
        if key not in self._known:
            self._known[key] = None  # a circle of imports ends here
            self._known[key] = self._look(name, importer, deep)
        return self._known[key]

    def _look(self, name: str, importer: Path, deep: int) -> Scope | None:
        found = self._module(name, importer) if deep < _DEEP else None
        path, rest = found or (None, [])
        file = self._file(path) if path is not None and rest else None
        if file is None:
            return None
        imported = file.imported(rest[0])
        if imported and not re.search(rb"^(?:async def|def|class) %s\b" % rest[0].encode(), file.data, re.M):
            return self._find(".".join([imported, *rest[1:]]), file.path, deep + 1)
        return self._part(file, rest)

    def beside(self, name: str, scope: Scope) -> Scope | None:
        """The function or class NAME of the file that SCOPE is of, where that is another than the one examined."""
        path = self._home(scope)
        return self._part(self.used[path], [name]) if path is not None else None

    def _part(self, file: Linked, words: Sequence[str]) -> Scope | None:
        scope = file.module(words[0])
        if scope is not None and id(scope) not in self._homes:
            self._homes[id(scope)] = file.path
            self.methods.update(name for each in scope.inner.values() if each.kind == "class" for name in each.inner)
        for word in words:
            scope = scope.inner.get(word) if scope is not None else None
        return scope

    def _file(self, path: Path) -> Linked | None:
        """The file PATH, which counts as used from now on; None for the one that is examined, and what is no Python."""
        file = self.used.get(path)
        if file is None and self.own is not None and not path.samefile(self.own):
            file = _read(path)
            if file is not None:
                self.used[path] = file
        return file

    def texts_of_project(self, path: Path) -> Iterator[bytes]:
        """The texts of the files beside PATH in its project; they count as used: what one says may change."""
        found = (self._file(each) for each in sources_of_project(path))
        yield from (each.data for each in found if each is not None)

    def _module(self, name: str, importer: Path) -> tuple[Path, list[str]] | None:
        """The file in which the dotted NAME begins as IMPORTER sees it, and the words of NAME that are left."""
        key = (name, importer)
        if key not in self._modules:
            self._modules[key] = self._seek(name, importer)
        return self._modules[key]

    def _seek(self, name: str, importer: Path) -> tuple[Path, list[str]] | None:
        bare = name.lstrip(".")
        words, level = bare.split("."), len(name) - len(bare)
        if level:
            folder = Path(os.path.normpath(Path(importer.parent.absolute(), *[".."] * (level - 1))))
            return file_below(folder, words) if folder in folders_of_project(importer.parent) else None
        found = self._folder(words[0], importer.parent) if words[0] not in _FOREIGN else None
        return file_below(found, words) if found is not None else None

    def _folder(self, word: str, start: Path) -> Path | None:
        """The folder at or above START, and inside of the project, in which the module or package WORD lies."""
        key = (word, start)
        if key not in self._folders:
            self._folders[key] = None
            for folder in folders_of_project(start):
                if is_module(folder / word):
                    self._folders[key] = folder
                    break
                self.absent.append(folder / word)
        return self._folders[key]


def _as_seen(name: str, within: str, importer: Path) -> str:
    """NAME, as the file IMPORTER imports it, for those who see what is in that file behind WITHIN ("pkg.utils.")."""
    rest = name.lstrip(".")
    level = len(name) - len(rest)
    if not level:
        return name
    up = level - (importer.name == "__init__.py")
    words = within.strip(".").split(".") if within.strip(".") else []
    dots = within[: len(within) - len(within.lstrip("."))]
    return dots + ".".join([*words[: len(words) - up], rest]) if up <= len(words) else ""


_files: OrderedDict[tuple[Path, int, int], Linked] = OrderedDict()


def _read(path: Path) -> Linked | None:
    """The file PATH, the same object while it stays as it is; None, as for an unknown name, where it cannot be read."""
    if leads_out(path):
        return None
    try:
        about = path.stat()
        key = (path, about.st_mtime_ns, about.st_size)
        if key not in _files:
            if not path.is_file() or about.st_size > _LARGEST:
                return None
            _files[key] = Linked(path, path.read_bytes())
    except OSError:
        return None
    _files.move_to_end(key)
    if len(_files) > _REMEMBERED:
        _files.popitem(last=False)
    return _files[key]
