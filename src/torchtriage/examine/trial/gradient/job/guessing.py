"""Inputs worked out where none are given: from forward's signature, trying shapes until forward and backward accept."""

from __future__ import annotations

import inspect
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from .choices import ALLOWED, MASKLIKE, NUMBERLIKE, SCALARLIKE, SCALARS, SCHEMES
from .given import DOMAINS, HOW, Given, drawn_from
from .problem import settle, weights
from .refusing import Refused, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .target import Subject

TRIES = 600  # calls of forward at most
SURE = (
    "incorrect number of gradients", "invalid gradient at index", "NameError", "AttributeError", "UnboundLocalError",
    "NotImplementedError",
)  # fmt: skip
"""What backward says where no other shapes would help."""


class Tensor:
    """A tensor is wanted here. kind: "float", "int" or "bool"."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


FLOAT, INT, BOOL = Tensor("float"), Tensor("int"), Tensor("bool")


class Search:
    """Goes through what the parameters may be, in one order always."""

    def __init__(self, subject: Subject, seed: int = 0) -> None:
        self.subject, self.seed, self.tries = subject, seed, 0
        self.refusal: str = ""
        self.half: list[tuple[Given, str]] = []

    def found(self) -> Given:
        """The first arguments with which forward gives finite numbers and backward takes them; else those with which
        only forward does. Raises Refused.
        """
        for plan in islice(self._plans(), TRIES):
            given = self._tried(*plan)
            if given is not None:
                return given
        if self.half:
            return self._halfway()
        last = f"; the last says {self.refusal}" if self.refusal else ""
        what = f"no inputs could be worked out: forward refused {self.tries} sets of shapes{last}"
        raise Refused(what, self.subject.name, HOW)

    def _halfway(self) -> Given:
        """Only forward accepts: whether that is backward's mistake, or the shapes are not what is meant, is told apart
        by what backward says.
        """
        given, why = self.half[0]
        alike = {said for _, said in self.half}
        if all(any(word in each for word in SURE) for each in alike):
            return given
        raise Refused(
            f"backward accepts none of the shapes that forward accepts; with {given.shapes()} it raises {why}",
            self.subject.name,
            HOW,
        )

    def _plans(self) -> Iterator[tuple[Sequence[Any], tuple[tuple[int, ...], ...], str]]:
        """(what each argument is, the shapes of its tensors, their numbers' domain)."""
        choices = list(islice(self._arguments(), 40))
        for roles in choices:
            tensors = sum(isinstance(each, Tensor) for each in roles)
            yield from ((roles, shapes, domain) for shapes in SCHEMES.get(tensors, ()) for domain in DOMAINS)

    def _arguments(self) -> Iterator[Sequence[Any]]:
        """What each argument may be, those with a default left out first."""
        known = self.subject.parameters()
        if known is None or any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in known):
            plain = [each for each in known or () if each.kind is not inspect.Parameter.VAR_POSITIONAL]
            plain = [each for each in plain if each.kind is not inspect.Parameter.VAR_KEYWORD]
            for more in (1, 2, 3, 0):
                yield from product(*(roles(each) for each in plain if each.default is each.empty), *[(FLOAT,)] * more)
            return
        plain = [each for each in known if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        first = [each for each in plain if each.default is each.empty]
        later = [each for each in plain if each.default is not each.empty]
        with_tensors = max((at for at, each in enumerate(later, 1) if each.default is None), default=0)
        for more in dict.fromkeys((0, with_tensors)) if with_tensors else (0,):
            yield from product(*(roles(each) for each in first), *(_optional(each) for each in later[:more]))

    def _tried(self, arguments: Sequence[Any], shapes: Sequence[tuple[int, ...]], domain: str) -> Given | None:
        import torch

        self.tries += 1
        given = self._given(arguments, shapes, domain)
        for dtype in (torch.float64, torch.float32):
            given.dtype = dtype
            try:
                settle()
                problem = given.problem()
                outputs = problem.outputs()
            except Exception as error:  # noqa: BLE001 - that is how it is found out what forward accepts
                self.refusal = said(error)
                continue
            if not outputs or not all(bool(torch.isfinite(each).all()) and each.numel() for each in outputs):
                self.refusal = "no finite number" if outputs else "no floating tensor is returned"
                return None
            try:
                problem.gradients(weights(outputs))
            except Exception as error:  # noqa: BLE001 - likewise of backward
                self.half.append((given, said(error)))
                continue
            return given
        return None

    def _given(self, arguments: Sequence[Any], shapes: Sequence[tuple[int, ...]], domain: str) -> Given:
        import torch

        source = torch.Generator().manual_seed(self.seed)
        left = iter(shapes)
        made = []
        for each in arguments:
            if not isinstance(each, Tensor):
                made.append(each)
                continue
            shape = next(left)
            if each.kind == "float":
                made.append(drawn_from(domain, shape, source, 1.0, torch.float64))
            else:
                made.append(
                    torch.randint(0, 2, shape, generator=source).to(torch.bool if each.kind == "bool" else torch.int64)
                )
        words = "worked out from the signature" + (f", {domain} numbers" if domain != "normal" else "")
        return Given(self.subject, made, {}, words)


def roles(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """What a parameter without a default may be, the likeliest first."""
    hint = (
        parameter.annotation
        if isinstance(parameter.annotation, str)
        else getattr(parameter.annotation, "__name__", str(parameter.annotation))
    )
    name = parameter.name.lower()
    said_tensor = "Tensor" in hint
    if not said_tensor and parameter.annotation is not parameter.empty:
        for kind, values in ALLOWED.items():
            if kind.__name__ in hint.split(" | ") or hint in (kind.__name__, f"Optional[{kind.__name__}]"):
                return tuple(each for each in SCALARS.get(name, ()) if type(each) is kind) or values
    if name in SCALARS and not said_tensor:
        return (*SCALARS[name], FLOAT)
    if name in NUMBERLIKE:
        return (INT, FLOAT) if name not in {"target", "targets", "y_true", "label"} else (FLOAT, INT)
    if name in MASKLIKE:
        return (BOOL, FLOAT)
    if name in SCALARLIKE and not said_tensor:
        return (0.7, FLOAT)
    return (FLOAT,) if said_tensor else (FLOAT, 0.7, 2, INT)


def _optional(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """What stands in for a default: a tensor where that is None."""
    return (FLOAT,) if parameter.default is None else (parameter.default,)
