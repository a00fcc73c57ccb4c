"""What expressions of a training program come to.

Numbers, text, None, lists, tuples, dicts and sets are themselves. Everything else is one of the classes below; what
cannot be known is Unknown, and no rule may conclude anything from it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Value: TypeAlias = Any
Arguments: TypeAlias = tuple[Value, ...]
Keywords: TypeAlias = Mapping[str, Value]


@dataclass(eq=False)
class Unknown:
    """A value of which nothing is known. why: the code that it came from. is_of_rank: it differs among the ranks.

    is_option: whoever starts the program may ask for it, and gets nothing of the kind by default. is_plain: it is no
    tensor, and none is in it: a size, a device.
    """

    why: str = ""
    is_of_rank: bool = False
    is_option: bool = False
    is_plain: bool = False

    @classmethod
    def of(cls, why: str, *operands: Value) -> Unknown:
        """What is computed of OPERANDS."""
        unknown = [each for each in operands if isinstance(each, Unknown)]
        return cls(
            why,
            any(each.is_of_rank for each in unknown),
            any(each.is_option for each in unknown),
            is_plain=bool(unknown) and all(each.is_plain for each in unknown),
        )


@dataclass(eq=False)
class Loaded(Unknown):
    """What a file of torch.save holds under KEYS, or a number OFFSET above that. spot: where it is read."""

    path: Value = None
    keys: tuple[Value, ...] = ()
    offset: int = 0
    spot: Spot | None = None


@dataclass(frozen=True)
class Factor:
    """That a tensor was multiplied by VALUE, among what it was divided by."""

    value: Value


@dataclass(frozen=True)
class External:
    """A thing of a package that is not executed, by its real dotted name: torch.nn.Linear."""

    name: str


@dataclass(frozen=True)
class Spot:
    """Where something happens: a node of the file PATH. calls: those that led there, with their files, the outermost
    first.
    """

    path: str
    node: ast.AST
    calls: tuple[tuple[str, ast.AST], ...] = ()

    @property
    def line(self) -> int:
        return int(getattr(self.node, "lineno", 1))


@dataclass(eq=False)
class Namespace:
    """A module of the project, or what argparse, SimpleNamespace and the like make. is_open: has more than is known.

    holds_settings: of yacs, OmegaConf and the like, with methods of their own.
    """

    name: str
    values: dict[str, Value] = field(default_factory=dict)
    is_open: bool = False
    holds_settings: bool = False


@dataclass(eq=False)
class Class:
    """A class of the project. lineage: itself and what it inherits from, in the order of the search."""

    name: str
    bases: tuple[Value, ...]
    namespace: dict[str, Value]
    path: str
    node: ast.ClassDef
    fields: tuple[str, ...] | None = None
    """Of a data class, its fields in order."""

    @property
    def lineage(self) -> Iterator[Value]:
        yield self
        seen: list[Value] = []
        for base in self.bases:
            for each in base.lineage if isinstance(base, Class) else (base,):
                if each not in seen:
                    seen.append(each)
        yield from seen

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


@dataclass(eq=False)
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
    autocast: str | None = None
    is_generator: bool = False


@dataclass(eq=False)
class Method:
    """FUNCTION, bound to what it is called on."""

    receiver: Value
    function: Function


@dataclass(eq=False)
class Partial:
    """functools.partial(CALLED, …)."""

    called: Value
    arguments: tuple[Value, ...]
    keywords: Mapping[str, Value]


@dataclass(eq=False)
class Operation:
    """What a method of a thing that is executed here does: optimizer.step."""

    receiver: Value
    name: str


@dataclass(eq=False)
class Super:
    """super(): what comes after OWNER in the lineage of the class of RECEIVER."""

    receiver: Value
    owner: Class


@dataclass(eq=False)
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


@dataclass(eq=False)
class Tensor:
    """A tensor.

    spot: where it was made. graph: the parameters that its graph leads to; is_open: it may lead to more. scaled: the
    scaler by which it is multiplied. activation: the function that it comes out of as it is ("softmax"). loss: the
    function of which it is the mean over a batch. divided: by what it was divided since. ages: the iterations, by
    number, in which the operations of its graph were executed.
    """

    spot: Spot | None = None
    graph: frozenset[Parameter] = frozenset()
    is_open: bool = False
    scaled: Object | None = None
    activation: str = ""
    loss: str = ""
    divided: tuple[Value, ...] = ()
    ages: frozenset[int] = frozenset()
    has_escaped: bool = False
    created: str = ""
    """The function that made it from nothing ("randn"), where it still stands on the CPU as that left it."""
    attribute: Spot | None = None
    """Where a module keeps it as a plain attribute."""
    cut: Spot | None = None
    """Where it, or what it was computed of, has lost a graph."""
    needed: str = ""
    """The operation that gave it, and needs it for its own gradient ("exp")."""
    context: Object | None = None
    """Of the autograd function whose input it is."""
    is_batch: bool = False
    """Whether a loader gave it as it is: it may be a batch of a class of its own, whose to() moves it in place."""
    is_gradient: bool = False
    """Whether autograd has given it to the backward of an autograd function."""
    flat: Spot | None = None
    """Where its gradient has become zero everywhere, by rounding and the like."""
    state: Object | None = None
    """The state of a module or optimizer that it is an entry of, as long as it shares its memory."""


@dataclass(eq=False)
class Gradient:
    """What stands in the .grad of a parameter. by: the losses of the backward passes that were added up, with their
    places. used: how many of them an optimizer has stepped with already. scaled: by which scaler it is multiplied.
    """

    by: tuple[tuple[Spot, Tensor], ...] = ()
    used: int = 0
    scaled: Object | None = None


@dataclass(eq=False)
class Parameter(Tensor):
    """A parameter. owner: the module that it was made for. name: within it."""

    owner: Object | None = None
    name: str = "weight"
    requires_grad: bool | None = True
    grad: Gradient | None = None
    is_gradient_known: bool = True
    is_empty: bool = False
    """Nothing has written to the memory that it was made of."""


class Parameters(list[Value]):
    """What `OF.parameters()` gave."""

    def __init__(self, parameters: list[Value], of: Object) -> None:
        super().__init__(parameters)
        self.of = of


@dataclass(eq=False)
class Endless:
    """What can be iterated over, and gives things like MAKE(n) as often as it is asked. source: the loader."""

    make: Callable[[int], Value]
    source: Value = None
    place: int = 0
    """How many of them next() has asked for."""


class _Over:
    """That there are no more elements."""


OVER = _Over()


LONGEST = 10_000
"""Elements of a container, and characters of a text, that are kept: `"-" * 10 ** 9` is one expression, too."""

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


def truth(value: Value) -> bool | None:
    """Whether VALUE counts as true; None where that is not known."""
    if isinstance(value, Unknown | Tensor | Endless):
        return None
    if isinstance(value, Object):
        return None if value.method("__len__") else True
    if isinstance(value, Namespace | Class | Function | Method | External | Operation | Partial):
        return True
    return bool(value)
