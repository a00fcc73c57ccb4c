"""Names that come from elsewhere: modules of the project, packages, and Python's own."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

from torchtriage.examine.source.execution.frames import File, Frame, Raised
from torchtriage.examine.source.execution.loading import Loading
from torchtriage.examine.source.execution.lore import BASES
from torchtriage.examine.source.execution.values import External, Function, Namespace, Unknown, Value
from torchtriage.examine.source.linked import Linked, Links
from torchtriage.examine.source.names import canonical

FILES = 40
"""Files of a project that one execution goes into. Training repositories have that many at most on the way; what the
others of a package of hundreds bring is not known.
"""


DEEP_IMPORTS = 2
"""Files within each other that are executed for one that is no program: what its functions use is near."""


class Imports(Loading):
    """The files of an execution. paths: of the files whose code is under way, the innermost last."""

    links: Links
    file: File
    paths: list[str]
    files: dict[Path, File]

    def builtin(self, name: str, frame: Frame) -> Value:
        if frame.file.is_open and not hasattr(builtins, name):
            return frame.file.unknown.setdefault(name, Unknown(name))
        is_builtin = hasattr(builtins, name)
        return External(f"builtins.{name}") if is_builtin else frame.file.unknown.setdefault(name, Unknown(name))

    def imports(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            value = self._imported(alias.name, frame.file)
            if alias.asname is None and "." in alias.name:
                self._nested(alias.name, value, frame)
            else:
                frame.store(alias.asname or alias.name, value)

    def _nested(self, name: str, value: Value, frame: Frame) -> None:
        """`import a.b`: the name a, with b below it."""
        root, *rest = name.split(".")
        if isinstance(value, External):
            frame.store(root, External(canonical(root)))
            return
        held = frame.values.get(root)
        top = held if isinstance(held, Namespace) else Namespace(root, is_open=True)
        frame.store(root, top)
        for word in rest[:-1]:
            inner = top.values.setdefault(word, Namespace(word, is_open=True))
            top = inner if isinstance(inner, Namespace) else Namespace(word)
        top.values[rest[-1]] = value

    def imports_from(self, node: ast.ImportFrom, frame: Frame) -> None:
        module = "." * node.level + (node.module or "")
        source = self._imported(module, frame.file)
        for alias in node.names:
            own = next((each for each in BASES if _is_of_own(each, alias.name, frame.file)), None)
            if alias.name == "*":
                self._star(source, frame)
            elif own is not None:
                frame.store(alias.asname or alias.name, External(own))
            else:
                frame.store(alias.asname or alias.name, self._from(source, module, alias.name, frame.file))

    def _from(self, source: Value, module: str, name: str, file: File) -> Value:
        if isinstance(source, Namespace) and name in source.values:
            return source.values[name]
        if isinstance(source, External):
            return External(canonical(f"{source.name}.{name}"))
        within = module if module.endswith(".") else f"{module}."
        found = self._imported(within + name, file)  # a module of a package
        return found if isinstance(found, Namespace) else Unknown(name)

    def _star(self, source: Value, frame: Frame) -> None:
        if not isinstance(source, Namespace):  # it may bring anything, also under the names that are there
            frame.file.is_open = True
            frame.values |= {name: Unknown(name) for name, each in frame.values.items() if isinstance(each, Function)}
            return
        listed = source.values.get("__all__")
        names = (
            listed if isinstance(listed, list | tuple) else [each for each in source.values if not each.startswith("_")]
        )
        for name in names:
            if isinstance(name, str) and name in source.values:
                frame.store(name, source.values[name])
        frame.file.is_open |= source.is_open

    def _imported(self, name: str, file: File) -> Value:
        """What `import NAME` in FILE gives: a file of the project, executed once, or a package's."""
        found = self.links.file(name, file.real) if file.real is not None else None
        if found is None:
            return External(canonical(name)) if not name.startswith(".") else Unknown(name)
        linked, rest = found
        if rest:
            return External(canonical(name)) if not name.startswith(".") else Unknown(name)
        is_far = self.file.values.get("__name__") != "__main__" and len(self.paths) > DEEP_IMPORTS
        if linked.path not in self.files and (len(self.files) >= FILES or is_far):
            return Namespace(name, is_open=True)
        if linked.path not in self.files:
            self.files[linked.path] = File(self.links.shown(linked.path), linked.path)
            self._execute_file(self.files[linked.path], linked, name)
        inside = self.files[linked.path]
        return Namespace(name, inside.values, is_open=inside.is_open)

    def _execute_file(self, inside: File, linked: Linked, name: str) -> None:
        """The code of a module of the project, once."""
        inside.values["__name__"] = name.lstrip(".")
        if linked.tree is None:
            inside.is_open = True
            return
        self.paths.append(inside.path)
        try:
            self.run(linked.tree.body, Frame(inside, inside.values))
        except Raised:
            inside.is_open = True
        finally:
            self.paths.pop()


def _is_of_own(base: str, name: str, file: File) -> bool:
    """Whether NAME is BASE, the class that all models of a package inherit from, to FILE of that package itself: what
    its constructor does is of no interest, and takes more steps than the models.
    """
    package, _, last = base.partition(".")
    return name == last and file.real is not None and package in file.real.parts
