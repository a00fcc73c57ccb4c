"""What expressions of a training program come to.

Numbers, text, None, lists, tuples, dicts and sets are themselves. Everything else is one of the classes below, or
a tensor (autograd.py); what cannot be known is Unknown, and no rule may conclude anything from it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from torchtriage.examine.source.nodes import once

if TYPE_CHECKING:
    from torchtriage.examine.source.execution.autograd import GraphNode

MASK = "bool"
"""The format of what a comparison gives."""
BROADCAST = "a broadcast value"
"""Why what broadcast_object_list gives is not known: it is the same on all ranks."""
Value: TypeAlias = Any
Arguments: TypeAlias = tuple[Value, ...]
Keywords: TypeAlias = Mapping[str, Value]


@dataclass(eq=False, repr=False)
class Sampled:
    """What may be computed of samples."""

    share: Object | None = field(default=None, kw_only=True)
    """The loader of whose samples this rank has gone through its part alone, where it was computed of these."""
    device: str = field(default="", kw_only=True)
    """Where it is: "cuda" for any accelerator, "cpu" where it was taken back to the host, "" as it came."""


@dataclass(eq=False, repr=False)
class Unknown(Sampled):
    """A value of which nothing is known. why: the code that it came from. is_of_rank: it differs among the ranks.

    is_option: whoever starts the program may ask for it, and gets nothing of the kind by default. is_plain: it is no
    tensor, and none is in it: a size, a device. is_periodic: it comes to the same every so many iterations: step % 100.
    """

    why: str = ""
    is_of_rank: bool = False
    is_option: bool = False
    is_plain: bool = False
    is_sized: bool = False
    """Whether the program has asked for its length."""
    is_called: bool = False
    """Whether the program has called it: it is no tensor."""
    source: Value = None
    """Another unknown value, that it was computed of first."""
    is_given: bool = False
    """Whether a caller out of sight gives it."""
    is_periodic: bool = False
    values: dict[str, Value] = field(default_factory=dict)
    """Its attributes, as far as they were asked for or assigned."""
    grad_fn: GraphNode | None = None
    """Of what code that is not executed makes of tensors: an operation on these."""
    lost: Any = None
    """The event that the result of an operation on it was dropped, if it is a tensor."""
    module: Object | None = None
    """The model that it is, since an optimizer is made of its parameters()."""

    def __repr__(self) -> str:
        """What it came from and no more: an element of what is unknown is kept under the text of its key, and the
        values that hang together with a key are, in a library of models, gigabytes of text.
        """
        return f"{type(self).__name__}({self.why!r})"

    @classmethod
    def of(cls, why: str, *operands: Value) -> Unknown:
        """What is computed of OPERANDS."""
        unknown = [each for each in operands if isinstance(each, Unknown)]
        return cls(
            why,
            any(each.is_of_rank for each in unknown),
            any(each.is_option for each in unknown),
            is_plain=bool(unknown) and all(each.is_plain for each in unknown),
            share=share_of(operands),
            source=unknown[0] if unknown else None,
            is_periodic=any(each.is_periodic for each in unknown),
        )


@dataclass(eq=False, repr=False)
class Condition(Unknown):
    """What `not`, `and`, `or` make of PARTS of which not all are known. op: also "is", the part itself."""

    op: str = "is"
    parts: tuple[Value, ...] = ()

    @classmethod
    def build(cls, op: str, *parts: Value) -> Condition:
        known = Unknown.of(op, *parts)
        return cls(
            known.why,
            known.is_of_rank,
            known.is_option,
            known.is_plain,
            share=known.share,
            is_periodic=known.is_periodic,
            op=op,
            parts=parts,
        )


@dataclass(eq=False, repr=False)
class Member(Unknown):
    """What RECEIVER, of which nothing is known, has under NAME: a setting, or a method."""

    receiver: Value = None
    name: str = ""


@dataclass(eq=False, repr=False)
class Loaded(Unknown):
    """What a file of torch.save holds under KEYS, or a number OFFSET above that. spot: where it is read.

    loaded: where the file is.
    """

    path: Value = None
    keys: tuple[Value, ...] = ()
    offset: int = 0
    spot: Spot | None = None
    loaded: Spot | None = None


@dataclass(eq=False, repr=False)
class Answer(Unknown):
    """What `PART.load_state_dict(…)` at SPOT returns: the keys that do not fit, or None."""

    part: Object | None = None
    spot: Spot | None = None


@dataclass(frozen=True)
class Factor:
    """That a tensor was multiplied by VALUE, among what it was divided by."""

    value: Value


@dataclass(frozen=True)
class External:
    """A thing of a package that is not executed, by its real dotted name: torch.nn.Linear."""

    name: str


_STARTS = re.compile(r"(^|\.)(spawn|start_processes|Process)$")
"""How functions are called that start processes."""


@dataclass(frozen=True)
class Spot:
    """Where something happens: a node of the file PATH. calls: those that led there, with their files, the outermost
    first.
    """

    path: str
    node: ast.AST
    calls: tuple[tuple[str, ast.AST], ...] = ()

    def __str__(self) -> str:
        """The place in a fact; Trainings.sighting() leaves the file out where it is that of the finding."""
        return f"line {self.line} of «{self.path}»"

    @property
    def line(self) -> int:
        return int(getattr(self.node, "lineno", 1))

    @property
    def key(self) -> tuple[str, int, int]:
        """The place, the same in each execution: the file, the line and the column."""
        return self.path, self.line, int(getattr(self.node, "col_offset", 0))

    @property
    def process(self) -> tuple[int, ...]:
        """The calls that started the process in which it happens; () for the first one."""
        started = (each for _, each in self.calls if isinstance(each, ast.Call))
        return tuple(id(each) for each in started if _STARTS.search(ast.unparse(each.func)))

    @property
    def chain(self) -> tuple[tuple[str, ast.AST], ...]:
        """The calls that led there and the node itself, each with its file, the outermost first."""
        return (*self.calls, (self.path, self.node))

    def apart_from(self, other: Spot) -> Spot:
        """Where the way to this place leaves the way to OTHER: the call of a helper, for what happens in it."""
        for mine, theirs in zip(self.chain, other.chain, strict=False):
            if mine[1] is not theirs[1]:
                return Spot(*mine)
        return Spot(*self.chain[min(len(self.chain), len(other.chain)) - 1])


@dataclass(frozen=True, eq=False, repr=False)
class Region:
    """A region of autocast on a GPU. format: "float16"; "" outside of all, where it is off, and where it is not known.
    enabled: what it is switched by.
    """

    format: str = ""
    spot: Spot | None = None
    enabled: Value = True
    host: str = ""
    """The format of a region of the CPU, where operations on other devices stay as they are."""

    @property
    def is_on(self) -> bool:
        """Whether it may be on."""
        return self.enabled is not False


OUTSIDE = Region(enabled=False)


@dataclass(eq=False, repr=False)
class Namespace:
    """A module of the project, or what argparse, SimpleNamespace and the like make. is_open: has more than is known.

    holds_settings: of yacs, OmegaConf and the like, with methods of their own.
    """

    name: str
    values: dict[str, Value] = field(default_factory=dict)
    is_open: bool = False
    holds_settings: bool = False


@dataclass(eq=False, repr=False)
class Class:
    """A class of the project. lineage: itself and what it inherits from, in the order of the search."""

    name: str
    bases: tuple[Value, ...]
    namespace: dict[str, Value]
    path: str
    node: ast.ClassDef
    fields: tuple[str, ...] | None = None
    """Of a data class, its fields in order."""
    is_applied: bool = False
    """Whether the program names its apply(), which an autograd function has."""

    @cached_property
    def lineage(self) -> tuple[Value, ...]:
        ways = [list(base.lineage) if isinstance(base, Class) else [base] for base in self.bases]
        return (self, *_linearized([*ways, list(self.bases)]))

    @property
    def externals(self) -> tuple[str, ...]:
        """The names of the classes of packages that it inherits from."""
        return tuple(each.name for each in self.lineage if isinstance(each, External))

    @property
    def is_known(self) -> bool:
        return not any(isinstance(each, Unknown) for each in self.lineage)

    def has(self, name: str) -> bool:
        """Whether it, or a class of the project that it inherits from, defines NAME."""
        return any(isinstance(each, Class) and name in each.namespace for each in self.lineage)

    def get(self, name: str, default: Value = None) -> Value:
        """What NAME is in the first class of its lineage that defines it, else DEFAULT."""
        own = (each for each in self.lineage if isinstance(each, Class) and name in each.namespace)
        return next((each.namespace[name] for each in own), default)

    def method(self, name: str) -> Function | None:
        """The function that it defines or inherits under NAME."""
        found = self.get(name)
        return found if isinstance(found, Function) else None


def _linearized(ways: list[list[Value]]) -> Iterator[Value]:
    """The classes of WAYS in the order in which Python looks into them (C3)."""
    while ways := [each for each in ways if each]:
        heads = (way[0] for way in ways if not any(way[0] in other[1:] for other in ways))
        head = next(heads, ways[0][0])  # Python refuses bases that contradict each other
        yield head
        ways = [[each for each in way if each != head] for way in ways]


@dataclass(eq=False, repr=False)
class Function:
    """A function or lambda of the project. owner: the class in whose body it stands. grad: what a decorator sets."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    frame: Any
    defaults: tuple[Value, ...] = ()
    keyword_defaults: Mapping[str, Value] = field(default_factory=dict)
    owner: Class | None = None
    kind: str = ""
    """"property", "cached", "static", "class" or "context" by its decorator."""
    grad: bool | None = None
    autocast: Region | None = None
    is_cached: bool = False
    """Whether it is executed once, and its result kept (functools.cache)."""
    is_once: bool = False
    """Whether it says that it can be differentiated only once."""
    guards: tuple[Any, ...] = ()
    """The conditions on the rank around its definition, or in its decorator: some ranks alone have it."""
    wraps: Function | None = None
    """The method that it stands for, as a decorator of the project has made it."""

    @property
    def original(self) -> Function:
        """What it stands for at last; itself for most."""
        return self.wraps.original if self.wraps is not None else self

    @property
    def is_generator(self) -> bool:
        return not isinstance(self.node, ast.Lambda) and _yields(self.node)


@once
def _yields(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a `yield` stands in FUNCTION, and in no definition within it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(each)
    return False


@dataclass(eq=False, repr=False)
class Method:
    """FUNCTION, bound to what it is called on."""

    receiver: Value
    function: Function


@dataclass(eq=False, repr=False)
class Partial:
    """functools.partial(CALLED, …)."""

    called: Value
    arguments: tuple[Value, ...]
    keywords: Mapping[str, Value]
    spot: Spot | None = None


@dataclass(eq=False, repr=False)
class Operation:
    """What a method of a thing that is executed here does: optimizer.step."""

    receiver: Value
    name: str
    spot: Spot | None = None
    """Where it is named."""


@dataclass(eq=False, repr=False)
class Super:
    """super(): what comes after OWNER in the lineage of the class of RECEIVER."""

    receiver: Value
    owner: Class


OPAQUE = "a model"
"""The class of a model of which nobody sees what it is."""


@dataclass(eq=False, repr=False)
class Object:
    """An instance of a class of the project, or of one that is executed here.

    kind: "module", "optimizer", "scaler", "scheduler", "loader", "sampler", "dataset", "wrapper", "parser", "iterator",
    "handle", "profiler", "accelerator", "" for others. made: the real name of its class in a package; cls: its class in
    the project. arguments: what it was made of, by position and name. has_escaped: code that is not executed may have
    changed it.
    """

    kind: str
    made: str = ""
    cls: Class | None = None
    spot: Spot | None = None
    arguments: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    state: dict[str, Value] = field(default_factory=dict)
    has_escaped: bool = False

    def method(self, name: str) -> Function | None:
        """The function that its class in the project has under NAME."""
        return self.cls.method(name) if self.cls is not None else None

    def argument(self, name: str, position: int | None = None, default: Value = None) -> Value:
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.arguments):
            return self.arguments[position]
        return default


def given_model(spot: Spot | None) -> Object:
    """A model of which nobody sees what it is, and in which mode; SPOT: where it comes from."""
    return Object("module", OPAQUE, spot=spot, state={"training": None, "is_given": True})


class Parameters(list[Value]):
    """What `OF.parameters()` gave."""

    def __init__(self, parameters: list[Value], of: Object) -> None:
        super().__init__(parameters)
        self.of = of


@dataclass(eq=False, repr=False)
class Endless:
    """What can be iterated over, and gives things like MAKE(n) as often as it is asked. source: the loader."""

    make: Callable[[int], Value]
    source: Value = None
    place: int = 0
    """How many of them next() has asked for."""
    is_generated: bool = False
    """Whether a generator of the project gives them."""


class _Over:
    """That there are no more elements."""


OVER = _Over()


LONGEST = 10_000
"""Elements of a container, and characters of a text, that are kept: `"-" * 10 ** 9` is one expression, too."""

SHOWN = 8
"""Elements of a list that are looked at for what all of them have in common."""

BITS = 256
"""Of a whole number: squares of squares have more than a machine."""


def bounded(value: Value) -> Value:
    """VALUE, or that it is too long to be kept."""
    is_long = isinstance(value, str | bytes | list | tuple | dict | set | frozenset) and len(value) > LONGEST
    is_long |= isinstance(value, int) and value.bit_length() > BITS
    return Unknown("a long value") if is_long else value


def is_concrete(value: Value) -> bool:
    """Whether VALUE is a plain value of Python's, all through."""
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_concrete, value))
    if isinstance(value, dict):
        return all(is_concrete(key) and is_concrete(each) for key, each in value.items())
    if isinstance(value, range):
        return len(value) <= LONGEST
    return value is None or isinstance(value, str | bytes | bool | int | float | complex | slice)


def is_module(value: Value) -> bool:
    return isinstance(value, Object) and value.kind in ("module", "wrapper")


def share_of(values: Iterable[Value]) -> Object | None:
    """The loader whose part on this rank alone one of VALUES was computed of, or an element of a list among them."""
    for each in values:
        for one in each[:SHOWN] if isinstance(each, list | tuple) else (each,):
            if isinstance(one, Sampled) and one.share is not None:
                return one.share
    return None


def truth(value: Value) -> bool | None:
    """Whether VALUE counts as true; None where that is not known."""
    if isinstance(value, Sampled | Endless):
        return None
    if isinstance(value, Object):
        return None if value.method("__len__") else True
    if isinstance(value, Namespace | Class | Function | Method | External | Operation | Partial):
        return True
    return bool(value)
