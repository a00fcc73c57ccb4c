"""What the parts of an execution ask of each other: each is a class of its own, and the executor is all of them."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.ranks import Certainty
from torchtriage.examine.source.execution.values import Arguments, Class, Function, Keywords, Spot, Value


class Machine(ABC):
    """What evaluating an expression may lead to."""

    @abstractmethod
    def spot(self, node: ast.AST) -> Spot:
        """Where NODE is being executed."""

    @abstractmethod
    def count(self) -> None:
        """One more step."""

    @abstractmethod
    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """What NODE comes to in FRAME."""

    @abstractmethod
    def attribute(self, value: Value, name: str, node: ast.AST) -> Value: ...

    @abstractmethod
    def assign(self, value: Value, name: str, new: Value, node: ast.AST) -> None: ...

    @abstractmethod
    def call(self, called: Value, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value: ...

    @abstractmethod
    def item(self, value: Value, key: Value, node: ast.AST) -> Value: ...

    @abstractmethod
    def items(self, value: Value, node: ast.AST) -> Iterator[Value]: ...

    @abstractmethod
    def builtin(self, name: str, frame: Frame) -> Value: ...

    @abstractmethod
    def imports(self, node: ast.Import, frame: Frame) -> None: ...

    @abstractmethod
    def imports_from(self, node: ast.ImportFrom, frame: Frame) -> None: ...

    @abstractmethod
    def decorated(self, value: Value, decorator: ast.expr, frame: Frame) -> Value: ...

    @property
    @abstractmethod
    def is_around_training(self) -> bool:
        """Whether the innermost loop goes over epochs: another one in it trains."""

    @property
    @abstractmethod
    def is_repeated(self) -> bool:
        """Whether a loop is under way that has no known end."""

    @abstractmethod
    def fill(self, held: Tensor, node: ast.AST) -> None:
        """NODE assigns elements of HELD."""

    @abstractmethod
    def take_in(self, held: Tensor, part: Tensor, node: ast.AST) -> None:
        """NODE makes PART some elements of HELD."""

    @abstractmethod
    def edit(self, held: Tensor, node: ast.AST, name: str = "", given: tuple[Value, ...] = ()) -> None:
        """NODE changes HELD in place."""

    @abstractmethod
    def handled(self, silent: ast.AST | None) -> Callable[[], None]:
        """A `try` is entered, with the handler SILENT; what is given is called where its body has come to its end."""

    @abstractmethod
    def name(self, value: Value, node: ast.Attribute) -> None:
        """A statement names VALUE and does nothing with it."""

    @abstractmethod
    def note_kept(self, container: Value, value: Value, node: ast.AST) -> None:
        """VALUE has become an element of CONTAINER."""

    @abstractmethod
    def replaces(self, old: Value, new: Value, node: ast.AST) -> None:
        """NEW takes the place of OLD at NODE."""

    @abstractmethod
    def happen(self, event: Any) -> None:
        """Writes EVENT down."""

    @abstractmethod
    def note_read(self, values: Iterable[Value], name: str, node: ast.AST) -> None:
        """The host asks at NODE, by NAME ("float"), for the values of the tensors among VALUES."""

    @abstractmethod
    def note_sum(self, value: Value, node: ast.AST) -> None:
        """VALUE is added to others at NODE, or listed with them."""

    @abstractmethod
    def note_repeated(self, values: Iterable[Value], node: ast.AST) -> None:
        """NODE gives a list or a dict each of VALUES more than once."""

    @abstractmethod
    def note_defaults(self, function: Function, nodes: list[ast.expr]) -> None:
        """FUNCTION has been defined, with the defaults at NODES."""

    @abstractmethod
    def note_class(self, cls: Class) -> None:
        """CLS has been defined."""

    @abstractmethod
    def bury(self, result: Tensor, operands: Iterable[Tensor], node: ast.AST) -> None:
        """RESULT of NODE has no gradient for what OPERANDS were computed of."""

    @abstractmethod
    def accumulate(self, name: str, value: Value, node: ast.AST) -> None:
        """The variable NAME has become VALUE by an assignment like +=."""

    @abstractmethod
    def enter(self, value: Value, node: ast.AST) -> tuple[Callable[[], None], Value]: ...

    @abstractmethod
    def loop(self, node: ast.AST) -> AbstractContextManager[Any]: ...

    @abstractmethod
    def goes_on(self, loop: Any) -> bool:
        """Whether one more iteration of LOOP may show something."""

    @abstractmethod
    def note_period(self, number: int) -> None:
        """Something happens every NUMBER iterations of the loop under way."""

    @abstractmethod
    def set_environment(self, entries: Mapping[Value, Value], node: ast.AST) -> None:
        """NODE sets variables of the environment to ENTRIES."""

    @abstractmethod
    def guard(
        self, node: ast.stmt | ast.expr, way: bool, certainty: Certainty = "rank"
    ) -> AbstractContextManager[None]:
        """A region that only some ranks come to."""

    @abstractmethod
    def note_count(self, number: int) -> None:
        """A count is compared with NUMBER."""

    @abstractmethod
    def note_used(self, values: Iterable[Value], node: ast.AST) -> None:
        """NODE, an operation of torch, gets VALUES: they are tensors."""

    @abstractmethod
    def guard_rest(self, node: ast.stmt | ast.expr, way: bool, certainty: Certainty = "rank") -> None:
        """The rest of the function under way is such a region."""

    @abstractmethod
    def decide(self, node: ast.AST, value: Value, body: list[ast.stmt]) -> bool: ...

    @abstractmethod
    def combine(self, operands: Iterable[Value], node: ast.AST, op: ast.operator | None = None) -> Value:
        """What an operation on OPERANDS gives that are no plain values."""

    @abstractmethod
    def function(self, node: Any, frame: Frame, name: str) -> Function: ...

    @abstractmethod
    def parent(self, arguments: list[Value], frame: Frame) -> Value:
        """super(…) in FRAME."""
