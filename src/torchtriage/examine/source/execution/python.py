"""What Python's own functions, containers and standard library give."""

from __future__ import annotations

import ast
import math
import posixpath
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, ClassVar

from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.binding import ANY_KEY
from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.handlers import BROAD
from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.ranks import Guard, certainty_of_decorator, is_of_rank, is_rank_variable
from torchtriage.examine.source.execution.sequences import Sequences
from torchtriage.examine.source.execution.values import (
    LONGEST,
    OUTSIDE,
    Arguments,
    Class,
    External,
    Function,
    Keywords,
    Loaded,
    Member,
    Namespace,
    Object,
    Partial,
    Unknown,
    Value,
    bounded,
    is_concrete,
    is_module,
    share_of,
)
from torchtriage.examine.source.torch_api.symbols import symbols

_PURE: dict[str, Callable[..., Any]] = {
    "builtins.abs": abs, "builtins.bool": bool, "builtins.divmod": divmod, "builtins.float": float, "builtins.int": int,
    "builtins.len": len, "builtins.max": max, "builtins.min": min, "builtins.repr": repr,
    "builtins.round": round, "builtins.set": set,
    "builtins.sorted": sorted, "builtins.str": str, "builtins.frozenset": frozenset,
    "builtins.any": any, "builtins.all": all, "builtins.slice": slice,
    "math.ceil": math.ceil, "math.floor": math.floor, "math.sqrt": math.sqrt, "math.log": math.log,
    "math.log2": math.log2, "math.prod": math.prod, "math.isfinite": math.isfinite, "math.isnan": math.isnan,
    "os.path.join": posixpath.join, "os.path.basename": posixpath.basename, "os.path.dirname": posixpath.dirname,
    "os.path.splitext": posixpath.splitext, "pathlib.Path": posixpath.join, "pathlib.PurePath": posixpath.join,
    "os.fspath": str,
}  # fmt: skip
"""Functions that are called as they are where their arguments are plain values."""
_READERS = frozenset(
    {"builtins.float", "builtins.int", "builtins.bool", "builtins.round", "builtins.str", "builtins.print"}
)
"""Functions that must know the values of tensors."""
_TYPES: dict[str, type] = {
    "builtins.int": int, "builtins.float": float, "builtins.str": str, "builtins.bool": bool, "builtins.list": list,
    "builtins.tuple": tuple, "builtins.dict": dict, "builtins.set": set,
}  # fmt: skip
_DECORATORS = {
    "builtins.property": "property",
    "functools.cached_property": "cached",
    "abc.abstractproperty": "property",
    "builtins.staticmethod": "static",
    "builtins.classmethod": "class",
    "contextlib.contextmanager": "context",
}
_PADDING = frozenset(
    {"ljust", "rjust", "center", "zfill", "expandtabs", "format", "format_map", "translate", "to_bytes"}
)
"""Methods whose result may be far longer than what they are given."""


class Python(Sequences):
    """Python's own part; what is torch's stands in the library.

    registered: functions that a decorator out of sight was given.
    """

    registered: list[Function]

    @abstractmethod
    def register(self, held: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """HELD, a module, gets a part by its name: the two ARGUMENTS."""

    _works_of: ClassVar[dict[str, Callable[..., Value]]] = {}

    def python(self, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value | None:
        """What calling NAME of Python's own gives; NotImplemented where it is none of these."""
        if name in _READERS or name.startswith("math."):
            self.note_read(arguments, name.rpartition(".")[2], node)
        work = self._works_of.get(name)
        if work is not None:
            return work(self, arguments, keywords, node)
        if name in _PURE and is_concrete(list(arguments)) and is_concrete(dict(keywords)):
            try:
                return bounded(_PURE[name](*arguments, **keywords))
            except Exception:  # noqa: BLE001 - what Python refuses here, it would refuse in the program
                return Unknown(name)
        if name in ("os.getenv", "os.environ.get"):
            return self.environment(*arguments[:1])
        if name.startswith(("builtins.", "os.path.", "pathlib.")):
            return self._of_unknown(name.removeprefix("builtins."), arguments)
        return NotImplemented

    def _of_unknown(self, name: str, arguments: Arguments) -> Value:
        """What a function of Python's own gives of what is not known, as far as that matters."""
        rank = next(filter(is_of_rank, arguments), None)
        if rank is not None:
            return Unknown(rank.why, is_of_rank=True)
        first = arguments[0] if arguments else None
        return first if name == "int" and isinstance(first, Loaded) else NotImplemented

    def environment(self, name: Value = None) -> Value:
        """The variable NAME of the environment: launchers tell each process its rank by it."""
        if isinstance(name, str) and is_rank_variable(name):
            return Unknown(name, is_of_rank=True)
        return Unknown("a variable")

    def _of_environment(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """os.environ.update({…}), os.environ.setdefault(name, value), os.putenv(name, value)."""
        given = arguments[0] if arguments else {}
        pairs = given if isinstance(given, dict) else {given: arguments[1]} if len(arguments) > 1 else {}
        self.set_environment({**pairs, **keywords}, node)
        return Unknown("a variable")

    def _dict_of(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        made: dict[Value, Value] = {}
        for value in arguments[:1]:
            if isinstance(value, dict):
                made |= value
            elif isinstance(value, Object) and value.kind == "state":
                made |= self.entries_of(value)
            elif isinstance(value, list | tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in value):
                made |= dict(value)
            else:
                return Unknown("a dict")
        return {**made, **keywords}

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
            is_any = value.state.get("is_any", False)  # one of the modules that it stands for is
            return True if is_any or value.made == kind.name else self.is_subclass(value.made, kind.name)
        is_tensor = isinstance(value, Tensor) and kind.name == "torch.Tensor"
        return True if is_tensor else False if is_concrete(value) and kind.name.startswith("torch") else None

    def _is_of_class(self, cls: Class, kind: Class | External) -> bool | None:
        if isinstance(kind, Class):
            return kind in cls.lineage or (False if cls.is_known else None)
        found = [each == kind.name or self.is_subclass(each, kind.name) for each in cls.externals]
        return True if True in found else None if None in found else False

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
            if name == "module" and value.kind in ("module", "wrapper"):
                return "module" in value.state
            is_own = value.cls is not None and not value.cls.externals and value.cls.is_known
            return False if is_own else Unknown("hasattr")
        return Unknown("hasattr")

    def _get(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) > 1 and arguments[0] == External("torch.optim") and isinstance(arguments[1], Unknown):
            return External("torch.optim.Optimizer")  # getattr(torch.optim, args.optimizer)
        if len(arguments) < 2 or not isinstance(arguments[1], str):
            return Unknown("getattr")
        has = self._has(arguments, {}, node)
        if has is False and len(arguments) > 2:
            return arguments[2]
        return self.attribute(arguments[0], arguments[1], node)

    def _set_attribute(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) == 3 and isinstance(arguments[1], str):
            self.assign(arguments[0], arguments[1], arguments[2], node)
        elif len(arguments) == 3 and is_module(arguments[0]) and is_module(arguments[2]):
            self.register(arguments[0], arguments[1:], {}, node)  # setattr(self, f"block{size}", block)
        return None

    def _partial(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Partial(arguments[0], arguments[1:], keywords, self.spot(node)) if arguments else Unknown("partial")

    def _default_dict(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return Object("defaultdict", state={"items": {}, "make": arguments[0] if arguments else None})

    def _named_tuple(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        """namedtuple("Parts", "net criterion")."""
        name, fields = arguments if len(arguments) == 2 else ("", None)
        words = fields.replace(",", " ").split() if isinstance(fields, str) else fields
        if not isinstance(name, str) or not isinstance(words, list | tuple) or not is_concrete(words):
            return Unknown("namedtuple")
        empty = ast.copy_location(ast.ClassDef(name, [], [], [ast.Pass()], []), node)
        return Class(name, (External("typing.NamedTuple"),), {}, self.spot(node).path, empty, tuple(words))

    def _suppressed(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        caught = {each.name for each in arguments if isinstance(each, External)}
        is_broad = bool(caught & (BROAD | symbols().memory_errors))
        return Object("suppress") if is_broad else Unknown("contextlib.suppress")

    def _queue(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(arguments) > 1 or keywords.get("maxlen") is not None:
            return Unknown("a bounded queue")
        return self.listed(arguments[0], node) if arguments else []

    def _as_dict(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        value = arguments[0] if arguments else None
        return dict(value.values) if isinstance(value, Object | Namespace) else Unknown("a dict")

    def _copied(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        value = arguments[0] if arguments else None
        made = self.copy_of(value, {})
        if isinstance(made, Object):
            made.state["copied"] = self.spot(node)
        return made

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
            new_tensor = type(value)(**{**vars(value), "state": None})
            made[id(value)] = new_tensor
            if isinstance(new_tensor, Parameter) and isinstance(value, Parameter):
                new_tensor.graph = frozenset({new_tensor} if new_tensor.graph else ())
                new_tensor.owner = self.copy_of(new_tensor.owner, made)
                new_tensor.copied = value if isinstance(value, Parameter) else None
            return new_tensor
        is_model = type(value) is Unknown and not value.is_plain  # deepcopy(model) of a parameter
        return replace(value, values={}, module=self.copy_of(value.module, made)) if is_model else value

    # methods of containers and of the few objects that are executed here

    def container_method(
        self, held: Value, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Value:
        """HELD.NAME(…) of a list, a dict, a text …"""
        if isinstance(held, list) and name == "extend" and arguments:
            found = self.listed(arguments[0], node)
            is_known = isinstance(found, list) and len(held) < LONGEST
            held.extend(found[:LONGEST] if is_known else [Unknown("*", share=share_of(arguments))])
            self.note_sum(arguments[0], node)
            return None
        if isinstance(held, dict) and name in ("items", "keys", "values"):
            return [*getattr(held, name)()]
        if isinstance(held, dict) and name == "update":
            return _update(held, (*arguments, dict(keywords)))
        if isinstance(held, dict) and arguments and isinstance(arguments[0], Unknown):
            arguments = (ANY_KEY, *arguments[1:])
        if isinstance(held, str) and name == "format":
            self.note_read((*arguments, *keywords.values()), name, node)
        is_padding = name in _PADDING or name.startswith("__")
        if is_padding or (isinstance(held, str) and not is_concrete(list(arguments))):
            return Unknown.of("text", *arguments, *keywords.values())
        try:
            found = PurePosixPath(held) if isinstance(held, str) and name in lore()["paths"] else held
            made = getattr(found, name)(*arguments, **keywords)
            return str(made) if found is not held else bounded(made)
        except Exception:  # noqa: BLE001 - what Python refuses here, it would refuse in the program
            return Unknown(name)

    def decorated(self, value: Value, decorator: ast.expr, frame: Frame) -> Value:
        """VALUE as DECORATOR leaves it."""
        found = self.evaluate(decorator.func if isinstance(decorator, ast.Call) else decorator, frame)
        if isinstance(found, External):
            return self._by_package(found.name, value, decorator, frame)
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter"):
            return found  # the property stays what it is to those who read it
        if isinstance(decorator, ast.Call):
            found = self.evaluate(decorator, frame)
        made = self.call(found, (value,), {}, decorator)
        if isinstance(value, Class):  # @persistent: the same class, listed or given another documentation
            return value if isinstance(made, Unknown) else made  # @singleton gives the only object of it
        if isinstance(value, Function) and type(made) in (Unknown, Member):
            value.guards += (Guard(decorator.lineno, True, 0, "open"),)
            if frame.is_class:  # @auto_docstring above forward()
                return value
            self.registered.append(value)  # @app.route("/weights"): it is run by others
        if isinstance(value, Function) and isinstance(made, Function) and made is not value and frame.is_class:
            made.wraps = value
        return made

    def _by_package(self, name: str, value: Value, decorator: ast.expr, frame: Frame) -> Value:
        if isinstance(value, Function):
            certainty = certainty_of_decorator(name)
            if certainty is not None:
                value.guards += (Guard(decorator.lineno, True, 0, certainty),)
            value.is_cached |= name in ("functools.cache", "functools.lru_cache")
            if name in _DECORATORS:
                value.kind = _DECORATORS[name]
            elif name == "torch.amp.custom_fwd" and "cast_inputs" in ast.unparse(decorator):
                value.autocast = OUTSIDE
            elif name == "torch.autograd.once_differentiable":
                value.is_once = True
            elif name == "torch.amp.autocast":
                region = self.evaluate(decorator, frame)
                value.autocast = region.state["region"] if isinstance(region, Object) else OUTSIDE
            elif name in ("torch.no_grad", "torch.inference_mode", "torch.enable_grad"):
                value.grad = name == "torch.enable_grad"
        elif isinstance(value, Class) and name in ("dataclasses.dataclass", "attr.s", "attrs.define", "attr.dataclass"):
            inherited = [each.fields or () for each in reversed(list(value.lineage)) if isinstance(each, Class)]
            own = value.namespace.get("__annotations__", [])
            value.fields = tuple(dict.fromkeys([*(name for fields in inherited for name in fields), *own]))
        return value


def _update(held: dict[Value, Value], given: Arguments) -> None:
    """HELD.update(…) with each of what is GIVEN."""
    for each in given:
        if isinstance(each, dict):
            held.update(each)
        elif isinstance(each, Unknown):  # CONFIG.update(vars(options)): any entry may be another one then
            held.update({key: Unknown("an entry") for key, value in held.items() if is_concrete(value)})


Python._works_of = {
    "builtins.len": Python._length,
    **dict.fromkeys(("os.environ.update", "os.environ.setdefault", "os.putenv"), Python._of_environment),
    "builtins.range": Python._range,
    **dict.fromkeys(("tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange"), Python._range),
    "builtins.list": Python._sequence,
    "builtins.tuple": Python._tuple_of,
    "builtins.dict": Python._dict_of,
    "collections.OrderedDict": Python._dict_of,
    "builtins.zip": Python._zipped,
    "builtins.enumerate": Python._enumerated,
    "builtins.reversed": Python._reversed,
    "builtins.map": Python._mapped,
    "builtins.filter": Python._filtered,
    "builtins.dict.fromkeys": Python._of_keys,
    "builtins.sum": Python._summed,
    "itertools.chain": Python._chained,
    "itertools.chain.from_iterable": Python._chained_from,
    "itertools.count": Python._counted,
    **dict.fromkeys(("itertools.cycle", "itertools.islice"), Python._cycled),
    "itertools.repeat": Python._repeating,
    "builtins.next": Python.next_of,
    "builtins.iter": Python._iterator,
    "builtins.isinstance": Python._is_instance,
    "builtins.hasattr": Python._has,
    "builtins.getattr": Python._get,
    "builtins.setattr": Python._set_attribute,
    "functools.partial": Python._partial,
    "collections.defaultdict": Python._default_dict,
    "collections.namedtuple": Python._named_tuple,
    "contextlib.suppress": Python._suppressed,
    "copy.deepcopy": Python._copied,
    **dict.fromkeys(("dataclasses.asdict", "builtins.vars"), Python._as_dict),
    "copy.copy": lambda self, arguments, keywords, node: arguments[0] if arguments else None,
    "dataclasses.field": lambda self, arguments, keywords, node: Object("field", keywords=keywords),
    "collections.deque": Python._queue,
}
