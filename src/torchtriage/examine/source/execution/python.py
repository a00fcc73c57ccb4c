"""What Python's own functions, containers and standard library give."""

from __future__ import annotations

import ast
import math
import posixpath
from collections.abc import Callable, Iterator
from typing import Any

from torchtriage.examine.source.execution.expressions import is_of_rank
from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.statements import Statements
from torchtriage.examine.source.execution.values import (
    LONGEST,
    Arguments,
    Class,
    Endless,
    External,
    Function,
    Keywords,
    Namespace,
    Object,
    Partial,
    Tensor,
    Unknown,
    Value,
    bounded,
    is_concrete,
    truth,
)

_PURE: dict[str, Callable[..., Any]] = {
    "builtins.abs": abs, "builtins.bool": bool, "builtins.divmod": divmod, "builtins.float": float, "builtins.int": int,
    "builtins.len": len, "builtins.max": max, "builtins.min": min, "builtins.range": range, "builtins.repr": repr,
    "builtins.reversed": lambda value: list(reversed(value)), "builtins.round": round, "builtins.set": set,
    "builtins.sorted": sorted, "builtins.str": str, "builtins.sum": sum, "builtins.frozenset": frozenset,
    "builtins.any": any, "builtins.all": all, "builtins.slice": slice,
    "math.ceil": math.ceil, "math.floor": math.floor, "math.sqrt": math.sqrt, "math.log": math.log,
    "math.log2": math.log2, "math.prod": math.prod, "math.isfinite": math.isfinite, "math.isnan": math.isnan,
    "os.path.join": posixpath.join, "os.path.basename": posixpath.basename, "os.path.dirname": posixpath.dirname,
    "os.path.splitext": posixpath.splitext,
}  # fmt: skip
"""Functions that are called as they are where their arguments are plain values."""
_TYPES: dict[str, type] = {
    "builtins.int": int, "builtins.float": float, "builtins.str": str, "builtins.bool": bool, "builtins.list": list,
    "builtins.tuple": tuple, "builtins.dict": dict, "builtins.set": set,
}  # fmt: skip
_DECORATORS = {
    "builtins.property": "property",
    "functools.cached_property": "property",
    "abc.abstractproperty": "property",
    "builtins.staticmethod": "static",
    "builtins.classmethod": "class",
    "contextlib.contextmanager": "context",
}
_PADDING = frozenset(
    {"ljust", "rjust", "center", "zfill", "expandtabs", "format", "format_map", "translate", "to_bytes"}
)
"""Methods whose result may be far longer than what they are given."""
_FLAGS = {"store_true": False, "store_false": True, "count": 0}


class Python(Statements):
    """Python's own part; what is torch's stands in the library."""

    def python(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value | None:
        """What calling NAME of Python's own gives; NotImplemented where it is none of these."""
        work = _WORKS.get(name)
        if work is not None:
            return work(self, arguments, keywords, node)
        if name in _PURE and is_concrete(list(arguments)) and is_concrete(dict(keywords)):
            try:
                return bounded(_PURE[name](*arguments, **keywords))
            except Exception:  # noqa: BLE001 - what Python refuses here, it would refuse in the program
                return Unknown(name)
        if name in ("os.getenv", "os.environ.get"):
            return self.environment(*arguments[:1])
        if any(map(is_of_rank, arguments)) and name.startswith("builtins."):
            return Unknown(name, is_of_rank=True)
        return NotImplemented

    def environment(self, name: Value = None) -> Value:
        """The variable NAME of the environment: launchers tell each process its rank by it."""
        return Unknown("a variable", is_of_rank=name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID"))

    def _length(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        value = arguments[0] if arguments else None
        if isinstance(value, list | tuple | dict | set | str | range):
            return len(value)
        if isinstance(value, Object):
            items = value.state.get("items")
            if isinstance(items, list | dict):
                return len(items)
            if value.method("__len__") is not None:
                return self.call(self.attribute(value, "__len__", node), (), {}, node)
        return Unknown("a length")

    def _sequence(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.listed(arguments[0], node) if arguments else []

    def _tuple_of(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        found = self._sequence(arguments, keywords, node)
        return tuple(found) if isinstance(found, list) else found

    def listed(self, value: Value, node: ast.AST) -> Value:
        """The elements of VALUE as a list; Unknown where there is no telling how many."""
        if isinstance(value, Endless | Unknown | Tensor) or (isinstance(value, range) and len(value) > LONGEST):
            return Unknown("a list")
        return list(self.items(value, node))

    def _dict_of(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        made: dict[Value, Value] = {}
        for value in arguments[:1]:
            if isinstance(value, dict):
                made |= value
            elif isinstance(value, list | tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in value):
                made |= dict(value)
            else:
                return Unknown("a dict")
        return {**made, **keywords}

    def _zipped(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if all(isinstance(each, list | tuple | range | str | dict) for each in arguments):
            return [tuple(each) for each in zip(*arguments, strict=False)]
        lists = [list(each) if isinstance(each, list | tuple | range | str | dict) else each for each in arguments]

        def one(over: Value, number: int) -> Value:
            return over[number % len(over)] if isinstance(over, list) and over else self.element(over, number, node)

        def make(number: int) -> Value:
            return tuple(one(each, number) for each in lists)

        return Endless(make, next((each for each in arguments if self.source_of(each) is not None), None))

    def _enumerated(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        over = arguments[0] if arguments else Unknown()
        start = keywords.get("start", arguments[1] if len(arguments) > 1 else 0)
        first = start if isinstance(start, int) else 0
        if isinstance(over, list | tuple | range | str | dict) or (isinstance(over, Object) and "items" in over.state):
            found = list(self.items(over, node))
            return [(first + place if isinstance(start, int) else Unknown(), each) for place, each in enumerate(found)]
        return Endless(
            lambda number: (first + number if isinstance(start, int) else Unknown(), self.element(over, number, node)),
            over,
        )

    def element(self, over: Value, number: int, node: ast.AST) -> Value:
        """The element NUMBER of something without a known end."""
        if isinstance(over, Endless):
            return over.make(number)
        if isinstance(over, Object) and over.kind == "loader":
            return self.batch(over, node)
        return Tensor() if isinstance(over, Tensor) else Unknown("an element")

    def batch(self, loader: Object, node: ast.AST) -> Value:
        raise NotImplementedError

    def source_of(self, value: Value) -> Object | None:
        """The loader that VALUE iterates over, through enumerate, zip and the like."""
        while isinstance(value, Endless):
            value = value.source
        return value if isinstance(value, Object) and value.kind == "loader" else None

    def _mapped(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        found = self.listed(arguments[1], node) if len(arguments) == 2 else Unknown()
        return (
            [self.call(arguments[0], (each,), {}, node) for each in found]
            if isinstance(found, list)
            else Unknown("map")
        )

    def _filtered(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        found = self.listed(arguments[1], node) if len(arguments) == 2 else Unknown()
        if not isinstance(found, list):
            return Unknown("filter")
        kept = [(each, each if arguments[0] is None else self.call(arguments[0], (each,), {}, node)) for each in found]
        return [each for each, known in kept if truth(known) is not False]

    def next_of(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        over = arguments[0] if arguments else Unknown()
        if isinstance(over, Object) and over.kind == "iterator":
            place = over.state["place"]
            over.state["place"] = place + 1
            held = over.state["over"]
            if isinstance(held, list):
                return held[place] if place < len(held) else Unknown("next")
            return self.element(held, place, node)
        return over[0] if isinstance(over, list) and over else Unknown("next")

    def _iterator(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        over = arguments[0] if arguments else Unknown()
        if isinstance(over, list | tuple | range | dict | str):
            over = list(over)
        return Object("iterator", state={"over": over, "place": 0})

    def _is_instance(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) != 2:
            return Unknown("isinstance")
        value, kinds = arguments
        found = [self._is_of(value, each) for each in (kinds if isinstance(kinds, tuple) else (kinds,))]
        return True if True in found else Unknown("isinstance") if None in found else False

    def _is_of(self, value: Value, kind: Value) -> bool | None:
        if isinstance(value, Unknown) or not isinstance(kind, Class | External):
            return None
        if isinstance(kind, External) and kind.name in _TYPES:
            return isinstance(value, _TYPES[kind.name])
        if isinstance(value, Object) and value.cls is not None:
            return self._is_of_class(value.cls, kind)
        if isinstance(kind, Class):
            return False if isinstance(value, Object | Tensor) or is_concrete(value) else None
        if isinstance(value, Object):
            return True if value.made == kind.name else self.is_subclass(value.made, kind.name)
        is_tensor = isinstance(value, Tensor) and kind.name == "torch.Tensor"
        return True if is_tensor else False if is_concrete(value) and kind.name.startswith("torch") else None

    def _is_of_class(self, cls: Class, kind: Class | External) -> bool | None:
        if isinstance(kind, Class):
            return kind in cls.lineage or (False if cls.is_known else None)
        return kind.name in cls.externals or (None if cls.externals else False)

    def is_subclass(self, name: str, of: str) -> bool | None:
        """Whether NAME, a class of a package, is a subclass OF another."""
        raise NotImplementedError

    def _has(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) < 2 or not isinstance(arguments[1], str):
            return Unknown("hasattr")
        value, name = arguments[:2]
        if isinstance(value, Namespace):
            return True if name in value.values else Unknown("hasattr") if value.is_open else False
        if isinstance(value, Object):
            if name in value.values or (value.cls is not None and value.cls.has(name)):
                return True
            if name == "module" and value.kind == "module":
                return "module" in value.state
            is_own = value.cls is not None and not value.cls.externals and value.cls.is_known
            return False if is_own else Unknown("hasattr")
        return Unknown("hasattr")

    def _get(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) < 2 or not isinstance(arguments[1], str):
            return Unknown("getattr")
        has = self._has(arguments, {}, node)
        if has is False and len(arguments) > 2:
            return arguments[2]
        return self.attribute(arguments[0], arguments[1], node)

    def _set_attribute(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) == 3 and isinstance(arguments[1], str):
            self.assign(arguments[0], arguments[1], arguments[2], node)
        return None

    def _partial(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Partial(arguments[0], arguments[1:], keywords) if arguments else Unknown("partial")

    def _record(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Namespace("record", dict(keywords), is_open="**" in keywords)

    def _default_dict(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Object("defaultdict", state={"items": {}, "make": arguments[0] if arguments else None})

    def _parser(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Object("parser", state={"options": {}})

    def _copied(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        value = arguments[0] if arguments else None
        return self.copy_of(value, {})

    def copy_of(self, value: Value, made: dict[int, Value]) -> Value:
        """copy.deepcopy(VALUE); MADE: the copies so far."""
        if id(value) in made:
            return made[id(value)]
        if isinstance(value, list):
            return [self.copy_of(each, made) for each in value]
        if isinstance(value, dict):
            return {key: self.copy_of(each, made) for key, each in value.items()}
        if isinstance(value, Object):
            new = Object(value.kind, value.made, value.cls, value.spot, value.arguments, value.keywords)
            made[id(value)] = new
            new.values = {name: self.copy_of(each, made) for name, each in value.values.items()}
            new.state = {name: self.copy_of(each, made) for name, each in value.state.items()}
            new.has_escaped = value.has_escaped
            return new
        if isinstance(value, Tensor):
            new_tensor = type(value)(**vars(value))
            made[id(value)] = new_tensor
            return new_tensor
        return value

    # methods of containers and of the few objects that are executed here

    def container_method(
        self, held: Value, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Value:
        """HELD.NAME(…) of a list, a dict, a text …"""
        if isinstance(held, list) and name == "extend" and arguments:
            found = self.listed(arguments[0], node)
            held.extend(found[:LONGEST] if isinstance(found, list) and len(held) < LONGEST else [Unknown("*")])
            return None
        if isinstance(held, dict) and name in ("items", "keys", "values"):
            return [*getattr(held, name)()]
        if isinstance(held, dict) and name == "update":
            for each in (*arguments, dict(keywords)):
                if isinstance(each, dict):
                    held.update(each)
            return None
        is_padding = name in _PADDING or name.startswith("__")
        if is_padding or (isinstance(held, str) and not is_concrete(list(arguments))):
            return Unknown("text")
        try:
            return bounded(getattr(held, name)(*arguments, **keywords))
        except Exception:  # noqa: BLE001 - what Python refuses here, it would refuse in the program
            return Unknown(name)

    def object_method(self, held: Object, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD.NAME(…) of an argument parser or a default dict."""
        if held.kind == "parser":
            return self._parsed(held, name, arguments, keywords)
        if held.kind == "defaultdict":
            items = held.state["items"]
            return self.container_method(items, name, arguments, keywords, node)
        return Unknown(name)

    def _parsed(self, held: Object, name: str, arguments: Arguments, keywords: Keywords) -> Value:
        if name == "add_argument":
            self._add_argument(held, arguments, keywords)
            return None
        if name in ("add_argument_group", "add_mutually_exclusive_group"):
            return held
        if name == "set_defaults":
            held.state["options"] |= keywords
            return None
        if name in ("parse_args", "parse_known_args"):
            options = Namespace("arguments", dict(held.state["options"]), is_open=True)
            return options if name == "parse_args" else (options, [])
        return Unknown(name)

    def _add_argument(self, held: Object, arguments: Arguments, keywords: Keywords) -> None:
        names = [each for each in arguments if isinstance(each, str)]
        if not names:
            return
        long = next((each for each in names if each.startswith("--")), names[0])
        name = keywords.get("dest") or long.lstrip("-").replace("-", "_")
        action = keywords.get("action", "")
        if "default" in keywords:
            value = keywords["default"]
            kind = keywords.get("type")
            if isinstance(value, str) and isinstance(kind, External) and kind.name in _PURE:
                value = self.python(kind.name, (value,), {}, ast.Pass())
        elif isinstance(action, str) and action in _FLAGS:
            value = _FLAGS[action]
        else:
            is_asked = not long.startswith("-") or (
                truth(keywords.get("required")) is not False and "required" in keywords
            )
            value = Unknown(f"--{name}") if is_asked else None
        if name in ("local_rank", "rank"):  # what torch.distributed.launch gave each process
            value = Unknown(f"--{name}", is_of_rank=True)
        held.state["options"][name] = value

    def decorated(self, value: Value, decorator: ast.expr, frame: Frame) -> Value:
        """VALUE as DECORATOR leaves it."""
        found = self.evaluate(decorator.func if isinstance(decorator, ast.Call) else decorator, frame)
        if isinstance(found, External):
            return self._by_package(found.name, value, decorator, frame)
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter"):
            return found  # the property stays what it is to those who read it
        if isinstance(decorator, ast.Call):
            found = self.evaluate(decorator, frame)
        return self.call(found, (value,), {}, decorator)

    def _by_package(self, name: str, value: Value, decorator: ast.expr, frame: Frame) -> Value:
        if isinstance(value, Function):
            if name in _DECORATORS:
                value.kind = _DECORATORS[name]
            elif name in ("torch.no_grad", "torch.inference_mode", "torch.enable_grad"):
                value.grad = name == "torch.enable_grad"
        elif isinstance(value, Class) and name in ("dataclasses.dataclass", "attr.s", "attrs.define", "attr.dataclass"):
            inherited = [each.fields or () for each in reversed(list(value.lineage)) if isinstance(each, Class)]
            own = value.namespace.get("__annotations__", [])
            value.fields = tuple(dict.fromkeys([*(name for fields in inherited for name in fields), *own]))
        return value

    def entries(self, value: Value) -> Iterator[Value] | None:
        """The elements of VALUE where they are all known; else None."""
        if isinstance(value, list | tuple):
            return iter(list(value))
        if isinstance(value, dict | set | frozenset | str | range):
            return iter(value if isinstance(value, range) else list(value))
        items = value.state.get("items") if isinstance(value, Object) else None
        return iter(list(items)) if isinstance(items, list | dict) else None


_WORKS: dict[str, Callable[..., Value]] = {
    "builtins.len": Python._length,
    "builtins.list": Python._sequence,
    "builtins.tuple": Python._tuple_of,
    "builtins.dict": Python._dict_of,
    "collections.OrderedDict": Python._dict_of,
    "builtins.zip": Python._zipped,
    "builtins.enumerate": Python._enumerated,
    "builtins.map": Python._mapped,
    "builtins.filter": Python._filtered,
    "builtins.next": Python.next_of,
    "builtins.iter": Python._iterator,
    "builtins.isinstance": Python._is_instance,
    "builtins.hasattr": Python._has,
    "builtins.getattr": Python._get,
    "builtins.setattr": Python._set_attribute,
    "functools.partial": Python._partial,
    "types.SimpleNamespace": Python._record,
    "argparse.Namespace": Python._record,
    "collections.defaultdict": Python._default_dict,
    "argparse.ArgumentParser": Python._parser,
    "copy.deepcopy": Python._copied,
    "copy.copy": lambda self, arguments, keywords, node: arguments[0] if arguments else None,
    "dataclasses.field": lambda self, arguments, keywords, node: Object("field", keywords=keywords),
    "collections.deque": lambda self, arguments, keywords, node: self.listed(arguments[0], node) if arguments else [],
}
