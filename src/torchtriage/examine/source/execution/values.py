"""What expressions of a training program come to.

Numbers, text, None, lists, tuples, dicts and sets are themselves. Everything else is one of the classes below; what
cannot be known is Unknown, and no rule may conclude anything from it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

Value: TypeAlias = Any
Arguments: TypeAlias = tuple[Value, ...]
Keywords: TypeAlias = Mapping[str, Value]


@dataclass(eq=False)
class Unknown:
    """A value of which nothing is known. why: the code that it came from. is_of_rank: it differs among the ranks.

    is_option: whoever starts the program may ask for it, and gets nothing of the kind by default. is_plain: it is no
    tensor, and none is in it: a size, a device. is_periodic: it comes to the same every so many iterations: step % 100.
    """

    why: str = ""
    is_of_rank: bool = False
    is_option: bool = False
    is_plain: bool = False
    share: Object | None = None
    """The loader of whose samples this rank has gone through its part alone, where it was computed of these."""
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


@dataclass(eq=False)
class Condition(Unknown):
    """What `not`, `and`, `or` make of PARTS of which not all are known. op: also "is", the part itself."""

    op: str = "is"
    parts: tuple[Value, ...] = ()

    @classmethod
    def made(cls, op: str, *parts: Value) -> Condition:
        known = Unknown.of(op, *parts)
        return cls(
            known.why,
            known.is_of_rank,
            known.is_option,
            known.is_plain,
            known.share,
            is_periodic=known.is_periodic,
            op=op,
            parts=parts,
        )


@dataclass(eq=False)
class Member(Unknown):
    """What RECEIVER, of which nothing is known, has under NAME: a setting, or a method."""

    receiver: Value = None
    name: str = ""


@dataclass(eq=False)
class Loaded(Unknown):
    """What a file of torch.save holds under KEYS, or a number OFFSET above that. spot: where it is read.

    loaded: where the file is.
    """

    path: Value = None
    keys: tuple[Value, ...] = ()
    offset: int = 0
    spot: Spot | None = None
    loaded: Spot | None = None


@dataclass(eq=False)
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


@dataclass(frozen=True, eq=False)
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
    autocast: Region | None = None
    is_generator: bool = False
    is_once: bool = False
    """Whether it says that it can be differentiated only once."""
    guards: tuple[Any, ...] = ()
    """The conditions on the rank around its definition, or in its decorator: some ranks alone have it."""


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
    spot: Spot | None = None


@dataclass(eq=False)
class Operation:
    """What a method of a thing that is executed here does: optimizer.step."""

    receiver: Value
    name: str
    spot: Spot | None = None
    """Where it is named."""


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
class PlainAttribute:
    """A tensor that a module keeps under NAME since SPOT, and that is neither a parameter nor a buffer.

    is_learned: it asks for a gradient. is_cared_for: it is replaced, moved or registered by other means.
    """

    spot: Spot
    name: str
    is_learned: bool = False
    is_cared_for: bool = False


@dataclass(eq=False)
class GraphNode:
    """An operation that a graph of autograd records. inputs: the operations that its operands come out of.

    weights: the parameters that it needs as they are for the gradient of its input, each with its version then.
    """

    inputs: tuple[GraphNode, ...] = ()
    weights: tuple[tuple[Parameter, int], ...] = ()
    is_of_layer: bool = False
    """Whether it keeps its input for the gradient of a layer's own parameters."""


@dataclass(eq=False)
class Tensor:
    """A tensor.

    spot: where it was made. graph: the parameters that its graph leads to; is_open: it may lead to more. scaled: the
    scaler by which it is multiplied. activation: the function that it comes out of as it is ("softmax"), activated:
    where. loss: the
    function of which it is the mean over a batch. divided: by what it was divided since. ages: the iterations, by
    number, in which the operations of its graph were executed.
    """

    spot: Spot | None = None
    graph: frozenset[Parameter] = frozenset()
    is_open: bool = False
    scaled: Object | None = None
    activation: str = ""
    activated: Spot | None = None
    loss: str = ""
    divided: tuple[Value, ...] = ()
    ages: frozenset[int] = frozenset()
    has_escaped: bool = False
    created: str = ""
    """The function that made it from nothing ("randn"), where it still stands on the CPU as that left it."""
    attribute: PlainAttribute | None = None
    """As what a module keeps it, or what it was computed of alone."""
    is_empty: bool = False
    """Nothing has written to the memory that it was made of."""
    moved: Parameter | None = None
    """The parameter of which it is the copy on another device, or in another format."""
    is_scalar: bool = False
    """Whether it has, or may have, no dimensions: such a tensor may stay on the CPU."""
    is_learned: bool = False
    """Whether it is no parameter, and asks for a gradient."""
    cut: Spot | None = None
    """Where it, or what it was computed of, has lost a graph."""
    needed: str = ""
    """The operation that gave it, and needs it for its own gradient ("exp")."""
    context: Object | None = None
    """Of the autograd function whose input it is."""
    is_leaf: bool = False
    """Whether it was made of numbers, and gets a gradient of its own."""
    is_entry: bool = False
    """Whether the caller of the function that is executed gives it."""
    is_batch: bool = False
    """Whether a loader gave it as it is: it may be a batch of a class of its own, whose to() moves it in place."""
    is_of_backward: bool = False
    """Whether it is what a backward of an autograd function is given, or what forward has saved for it."""
    is_gradient: bool = False
    """Whether autograd has given it to the backward of an autograd function."""
    flat: Spot | None = None
    """Where its gradient has become zero everywhere, by rounding and the like."""
    idle: frozenset[Spot] = frozenset()
    """Where the gradient of a term of it, a loss, has become zero everywhere."""
    dead: frozenset[Parameter] = frozenset()
    """Of its graph the parameters that get a gradient of zero everywhere."""
    buried: frozenset[tuple[Parameter, Spot]] = frozenset()
    """The parameters that it was computed of through an operation without a gradient, and where that is."""
    layer: str = ""
    """The class of the layer with weights that it comes out of as it is ("Linear")."""
    state: Object | None = None
    """The state of a module or optimizer that it is an entry of, as long as it shares its memory."""
    gradient_of: Parameter | None = None
    """Whose gradient it is."""
    memory_of: Parameter | None = None
    """Whose memory it is: `p.data`."""
    share: Object | None = None
    """The loader of whose samples this rank has gone through its part alone, where it was computed of these."""
    regions: frozenset[Region] = frozenset()
    """Those of autocast in which the operations of its graph were executed."""
    format: str = ""
    """Of its elements: "float16" …, where a cast, or the function that made it, says so."""
    device: str = ""
    """Where its elements are: "cuda" for any accelerator, "cpu" where it was taken back to the host, "" as it came."""
    same_as: Tensor | None = None
    """The tensor whose values it has: that of detach(), cpu() …"""
    of_gradients: str = ""
    """"norm" where it was computed of gradients, "inverse" where something was divided by that: a factor that clips."""
    bound: str = ""
    """"above" where it is never large, as x - x.max(); "below" where it is never negative, as a distance."""
    is_largest: bool = False
    """Whether it is the largest of the elements of something."""
    base: Tensor | None = None
    """The tensor whose memory it shares, or may share: it is a view of that."""

    @property
    def memory(self) -> Iterator[Tensor]:
        """Itself and the tensors whose memory it shares."""
        each: Tensor | None = self
        while each is not None:
            yield each
            each = each.base

    grad_fn: GraphNode | None = None
    """The operation that it comes out of, where a graph is recorded."""
    lost: Any = None
    """The event that the result of an operation on it was dropped."""
    is_output: bool = False
    """Whether a model of which nothing is known has returned it: it may be a tuple or a dict."""
    is_assumed: bool = False
    """Whether it may be a number as well: `loss, accuracy = model(batch)`."""

    @property
    def operations(self) -> set[GraphNode]:
        """Every operation of its graph."""
        found: set[GraphNode] = set()
        waiting = [self.grad_fn] if self.grad_fn is not None else []
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += each.inputs
        return found


def release(value: Value) -> None:
    """VALUE, where a module keeps it as a plain attribute, is looked after by other means."""
    if isinstance(value, Tensor) and value.attribute is not None:
        value.attribute.is_cared_for = True


@dataclass(eq=False)
class Gradient:
    """What stands in the .grad of a parameter. by: the losses of the backward passes that were added up, with their
    places. used: how many of them an optimizer has stepped with already. scaled: by which scaler it is multiplied.
    """

    by: tuple[tuple[Spot, Tensor], ...] = ()
    used: int = 0
    scaled: Object | None = None
    is_taken: bool = False
    """Whether the program has read it."""


@dataclass(eq=False)
class Parameter(Tensor):
    """A parameter. owner: the module that it was made for. name: within it."""

    owner: Object | None = None
    name: str = "weight"
    requires_grad: bool | None = True
    grad: Gradient | None = None
    is_gradient_known: bool = True
    copied: Parameter | None = None
    """Of which one it is a copy."""
    version: int = 0
    """How often an optimizer has changed it."""
    is_updated: bool = False
    """Whether the program changes its values itself: the copy that a moving average makes."""


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


def share_of(values: Iterable[Value]) -> Object | None:
    """The loader whose part on this rank alone one of VALUES was computed of, or an element of a list among them."""
    for each in values:
        inside = each[:SHOWN] if isinstance(each, list | tuple) else (each,)
        found = (one.share for one in inside if isinstance(one, Tensor | Unknown))
        share = next((one for one in found if one is not None), None)
        if share is not None:
            return share
    return None


def truth(value: Value) -> bool | None:
    """Whether VALUE counts as true; None where that is not known."""
    if isinstance(value, Unknown | Tensor | Endless):
        return None
    if isinstance(value, Object):
        return None if value.method("__len__") else True
    if isinstance(value, Namespace | Class | Function | Method | External | Operation | Partial):
        return True
    return bool(value)
