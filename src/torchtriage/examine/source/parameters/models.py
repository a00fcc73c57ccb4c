"""The parameters of the modules that source files define, in the order of list(model.named_parameters())."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchtriage.core.errors import USAGE, TriageError
from torchtriage.examine.confinement import leads_out
from torchtriage.examine.source.facts import Call
from torchtriage.examine.source.files import closed, found
from torchtriage.examine.source.parameters.assembly import Lost, Made, Meeting, Part, Value, inside, named
from torchtriage.examine.source.parameters.build import Builder
from torchtriage.examine.source.parameters.evaluate import Frame
from torchtriage.examine.source.parameters.layers import Given
from torchtriage.examine.source.parameters.usage import Usage
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.seen import text_of
from torchtriage.examine.source.text import UnreadableError

_WRAPPED = "DistributedDataParallel"


@dataclass(frozen=True, slots=True)
class Model:
    """A module class. names: its parameters from number 0 on, up to the first that cannot be known.

    unknown: why the numbering ends there, with path:line; empty where names is all of them.
    is_part: another class of the files is made with it. is_wrapped: the files hand one to DistributedDataParallel.
    """

    name: str
    names: tuple[str, ...]
    unknown: str = ""
    is_part: bool = False
    is_wrapped: bool = False


@dataclass(frozen=True, slots=True)
class Models:
    """The module classes of some files. frozen: where they freeze a parameter (path:line), which DDP does not count."""

    models: tuple[Model, ...]
    frozen: str = ""

    def fitting(self, highest: int, text: str = "") -> tuple[Model, ...]:
        """The models that may have a parameter of the number HIGHEST.

        Those that TEXT names, else those that the files hand to DDP, else those that are not only a part of another;
        those that surely have it come first.
        """
        fits = [each for each in self.models if each.unknown or len(each.names) > highest]
        whole = [each for each in fits if not each.is_part]
        words = frozenset("".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split())
        told = [each for each in whole if each.name in words] or [each for each in fits if each.is_wrapped]
        return tuple(sorted(told or whole, key=lambda each: len(each.names) <= highest))


def read(paths: Sequence[str | Path]) -> Models:
    """The models in the Python files under PATHS; nothing of them is run.

    Raises TriageError for a path that is missing, that holds no Python file, or that cannot be read as Python.
    Notebooks in a folder are passed over, and links that lead out of what may be read.
    """
    named = [Path(path) for path in paths]
    files = [path for path in found(named, USAGE) if path in named or (path.suffix == ".py" and not leads_out(path))]
    return models([_script(path) for path in files])


def models(scripts: Sequence[Script]) -> Models:
    """The models of SCRIPTS."""
    built = {}
    for script in scripts:
        for scope in script.classes:
            builder = Builder(scripts)
            if isinstance(part := _module(builder, Made(scope.name, script, scope)), Part):
                built[id(scope)] = part
    parts = {id(inner.made.scope) for part in built.values() for inner in inside(part) if inner.made is not None}
    wrapped = {id(made) for script in scripts for made in _wrapped(script, Builder(scripts))}
    told = tuple(_model(part, key in parts, key in wrapped) for key, part in built.items())
    return Models(told, next(filter(None, map(_frozen, scripts)), ""))


def _script(path: Path) -> Script:
    if (reason := closed(path)) is not None:
        raise TriageError(reason[0], str(path), reason[1])
    try:
        text, _ = text_of(path.as_posix(), path.read_bytes())
        return Script(path.as_posix(), text.data, text)
    except OSError as error:
        raise TriageError(f"cannot be read: {error.strerror}", str(path), "Give permission to read it.") from error
    except UnreadableError as error:
        raise TriageError(f"cannot be parsed: {error.why}", str(path), error.unblock) from error


def _model(part: Part, is_part: bool, is_wrapped: bool) -> Model:
    names, lost = named(part)
    name = part.made.name if part.made is not None else ""
    return Model(name, tuple(map(_shown, names)), _shown(lost.why) if lost else "", is_part, is_wrapped)


def _shown(text: str) -> str:
    """TEXT without what a terminal would act on: names and code stand in the source as somebody liked."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


def _module(builder: Builder, made: Made) -> Value:
    try:
        return _built(builder, made)
    except RecursionError:
        part = Part(made=made)
        part.lose(Lost(f"{made.script.text.path}:{made.scope.node.lineno}: nested too deeply to be followed"))
        return part


def _built(builder: Builder, made: Made) -> Value:
    """The module that MADE makes, as far as all the places where the files make one agree."""
    blank = Frame(made.script, made.scope, Usage(made.script, None))
    sites = [(script, call) for script in builder.scripts for call in script.calls(made.name)]
    sites = [(script, call) for script, call in sites if _is_made(builder, script, call, made)]
    if not sites:
        open_ = Given([], {}, f"{made.script.text.path}:{made.scope.node.lineno}: {made.name}", is_open=True)
        return builder.instantiate(made, open_, made.scope.node, blank)
    one, *others = (_at(builder, script, call) for script, call in sites)
    for other in others:
        where = f"{sites[0][0].text.path}:{sites[0][1].node.lineno}"
        one = Meeting(f"{where}: {made.name} is made in several ways").meet(one, other)
    return one


def _is_made(builder: Builder, script: Script, call: Call, made: Made) -> bool:
    value = builder.value(call.node.func, Frame(script, call.scope, Usage(script, None)))
    return isinstance(value, Made) and value.scope is made.scope


def _at(builder: Builder, script: Script, call: Call) -> Value:
    return builder.value(call.node, Frame(script, call.scope, Usage(script, call.scope)))


def _wrapped(script: Script, builder: Builder) -> list[object]:
    """The classes that SCRIPT hands to DDP."""
    made = []
    for call in script.calls(_WRAPPED, "DDP"):
        if call.node.args:
            for origin in script.trace.origins(call.node.args[0], call.scope):
                if origin.call is None:
                    continue
                value = builder.value(origin.call.func, Frame(script, origin.scope, Usage(script, None)))
                made += [value.scope] if isinstance(value, Made) and value.scope is not None else []
    return made


def _frozen(script: Script) -> str:
    """Where SCRIPT first sets requires_grad = False."""
    for node in ast.walk(script.facts.scopes[0].node):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=False)):
                pass
            case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[ast.Constant(value=False), *_]):
                pass
            case ast.Call(
                func=ast.Attribute(attr="requires_grad_"), keywords=[ast.keyword(value=ast.Constant(value=False))]
            ):
                pass
            case ast.Call(func=func, keywords=keywords) if _is_frozen(func, keywords):
                pass
            case _:
                continue
        return f"{script.text.path}:{node.lineno}"
    return ""


def _is_frozen(func: ast.expr, keywords: list[ast.keyword]) -> bool:
    """nn.Parameter(…, requires_grad=False)."""
    tail = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    false = [each.arg for each in keywords if isinstance(each.value, ast.Constant) and each.value.value is False]
    return tail == "Parameter" and "requires_grad" in false
