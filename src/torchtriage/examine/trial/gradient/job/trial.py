"""One trial: the gradient itself at several points first, then the same gradient in every other situation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import calling, casting, declared, inplace, laying, orders
from .given import Given, from_factory, from_shapes
from .judging import Judged, NotJudged, judge
from .problem import Problem, differ
from .refusing import Refused, said
from .results import Base, Result, absent, right, unseen, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .target import Subject

PARTS = ("input", "name", "entry", "analytical", "numerical", "explains", "factor", "differ", "judged", "of", "kinks")
POINTS = (("", 1.0, 1.0), ("at small inputs", 0.05, 100.0), ("at large inputs", 3.0, 0.01))
"""What the numbers of an input are multiplied by, and the gradient that comes in: a clip in backward shows by that."""


class Trial:
    """The function, its arguments, and what is expected of its gradient."""

    def __init__(
        self, subject: Subject, given: Given, again: Callable[[int], Given] | None, asked: dict[str, Any]
    ) -> None:
        self.subject, self.given, self.again, self.asked = subject, given, again, asked
        self.expect: str = asked.get("expect") or ""
        self.reference: Given | None = asked.get("reference")
        self.by_design = False  # forward is flat in steps, and its gradient is one of its own
        self.base: Base | None = None
        self.other: Base | None = None

    def checks(self) -> dict[str, Callable[[Base], Result]]:
        """What is looked at once the gradient itself is right, by name."""
        return {
            "needs-input-grad": self._needs,
            "twice": calling.twice,
            "two-calls": calling.two_calls,
            "same-twice": calling.same_twice,
            "in-place": inplace.inputs,
            "grad-output": inplace.grad_output,
            "grad-output layout": laying.grad_output,
            "input layout": laying.inputs,
            "one-output": calling.one_output,
            "broadcast": self._broadcast,
            "batched": calling.batched,
            "double-backward": self._double,
            "forward-mode": orders.forward_mode,
            "vmap": orders.own_vmap,
            "zero-size": self._empty,
            "autocast": self._autocast,
            "ctx": inplace.on_ctx,
        }

    def backward(self) -> list[Result]:
        """The gradient at all points; the first point at which it is wrong is told."""
        results: list[Result] = []
        for number, (words, problem, reference, scale) in enumerate(self._points()):
            try:
                judged = judge(problem, reference, seed=number, scale=scale)
            except NotJudged as reason:
                if number == 0:
                    return [unseen(reason.why, reason.unblock)]
                continue
            except Exception as error:  # noqa: BLE001 - the user's function raised it
                if number == 0:
                    return [self._raised(problem, error)]
                continue
            if number == 0:
                self._begin(problem, reference, judged)
                results += self._undecided(judged)
            found = [] if number and self.by_design else self._wrong(judged, words)
            if found:
                return [*found, *results]
        return [*results, *self._agreed(results)]

    def _begin(self, problem: Problem, reference: Problem | None, judged: Judged) -> None:
        self.base = Base(self.given, problem, judged.weights, judged.gradients)
        self.by_design = bool(judged.of("flat")) and not self.expect
        if reference is not None and self.reference is not None:
            self.other = Base(self.reference, reference, judged.weights, reference.gradients(judged.weights))
        traced = problem.traced()
        self.subject.inner = list(dict.fromkeys(type(node)._forward_cls for node in inplace.functions_in(traced.outputs)
                                                if hasattr(type(node), "_forward_cls")))  # fmt: skip

    def _points(self) -> Iterator[tuple[str, Problem, Problem | None, float]]:
        first = self.given.problem()
        for number, (words, size, scale) in enumerate(POINTS):
            problem = first
            if number:
                problem = self._drawn(first, number) or _resized(first, 0.9 if self.again else size, number)
            where = "at other inputs" if number and self.again else words
            yield where, problem, self._alike(problem), scale

    def _drawn(self, first: Problem, number: int) -> Problem | None:
        """What the factory draws with another seed, where that differs."""
        if self.again is None:
            return None
        try:
            other = self.again(number)
        except Refused:
            return None
        other.dtype, problem = self.given.dtype, other.problem()
        same = [a.shape == b.shape for a, b in zip(problem.values, first.values, strict=False)]
        if len(problem.values) != len(first.values) or not all(same) or differ(problem.values, first.values) is None:
            return None
        return problem

    def _alike(self, problem: Problem) -> Problem | None:
        """The reference at the point of PROBLEM."""
        if self.reference is None:
            return None
        own = self.reference
        own.dtype = self.given.dtype
        return Problem(own.problem().function, problem.values, problem.names, problem.numbers)

    def _raised(self, problem: Problem, error: Exception) -> Result:
        """Whether forward refuses its inputs, or backward fails."""
        try:
            outputs = problem.outputs()
            traced = problem.traced()
        except Exception as refused:  # noqa: BLE001 - the user's forward raised it
            return unseen(f"forward raises {said(refused)} with {self.given.shapes()}", "Give inputs that it takes.")
        del outputs, traced
        told = said(error)
        return wrong(f"backward raises {told}", **_of_shape(told, problem))

    def _wrong(self, judged: Judged, words: str) -> list[Result]:
        rows = [] if self.expect and declared.holds(self.expect, judged) else judged.of("wrong")
        if self.expect and not rows and not declared.holds(self.expect, judged):
            return [
                wrong(f"it is not {self.expect}, as it is said to be: {declared.RULES[self.expect]}", **_first(judged))
            ]
        if self.given.declared and not self.expect:
            for row in judged.of("none"):
                row["says"], row["explains"] = (
                    "backward returns None, though it is asked for and the output depends on it",
                    "cut",
                )
                rows.append(row)
        told = "" if self.reference is None else ", compared with the reference"
        return [wrong(f"{words or 'the gradient itself'}{told}", **_parts(row)) for row in rows]

    def _undecided(self, judged: Judged) -> list[Result]:
        """What no derivative can judge, each input with its reason."""
        if self.expect:
            return []
        found = []
        for row in judged.rows:
            words = declared.UNDECIDED.get(row["state"])
            if words and not (row["state"] == "none" and self.given.declared):
                found.append(unseen(words[0].format(**row), words[1].format(**row)))
        return found

    def _agreed(self, results: list[Result]) -> list[Result]:
        """Right, where at least one input could be judged."""
        base = self.base
        if base is None or len(results) >= len(base.problem.values):
            return []
        return [right(f"{len(POINTS)} points")]

    def _needs(self, base: Base) -> Result:
        told = calling.needs_input_grad(base)
        if told["state"] == "right":
            told["note"] = "; ".join(each for each in (told["note"], calling.unneeded(base)) if each)
        return told

    def _double(self, base: Base) -> Result:
        if self.expect or self.by_design:
            return absent("its gradient is no derivative, by design")
        return orders.double_backward(base, self.other)

    def _broadcast(self, base: Base) -> Result:
        if self.expect or self.by_design or self.reference is not None:
            return absent("its gradient is declared")
        tried = 0
        for words, problem in laying.smaller(base):
            try:
                if [each.shape for each in problem.outputs()] != [each.shape for each in base.outputs]:
                    continue
                rows = judge(problem, seed=4).of("wrong")
            except Exception:  # noqa: BLE001, S112 - a shape that is refused, loudly, is no wrong gradient
                continue
            tried += 1
            if rows:
                return wrong(words, **_parts(rows[0]))
        return right(f"{tried} shapes") if tried else absent("no input is broadcast")

    def _empty(self, base: Base) -> Result:
        """A batch of nothing, which the last step of an epoch may be."""
        first = base.problem.values[0]
        size = first.shape[0] if first.dim() else -1
        values = [each[:0].clone() if each.dim() and each.shape[0] == size else each for each in base.problem.values]
        problem = Problem(base.problem.function, values, base.problem.names, base.problem.numbers)
        try:
            outputs = problem.outputs()
        except Exception as error:  # noqa: BLE001 - a loud refusal is an answer
            return absent(f"an empty batch is refused: {said(error)}")
        try:
            problem.gradients([each.new_ones(each.shape) for each in outputs])
        except Exception as error:  # noqa: BLE001 - likewise
            return unseen(
                f"forward takes an empty batch, backward raises {said(error)}", "Mend it where batches can be empty."
            )
        return right()

    def _autocast(self, base: Base) -> Result:
        if any(each.is_complex() for each in base.problem.values):
            return absent("autocast leaves complex numbers alone")
        return casting.under_autocast(base)


def _resized(first: Problem, size: float, number: int) -> Problem:
    """The same inputs in another order of magnitude, and their numbers in another order."""
    values = [(each.flip(0) if each.dim() and number == 2 else each) * size for each in first.values]
    return Problem(first.function, values, first.names, first.numbers)


def _parts(row: dict[str, Any]) -> dict[str, Any]:
    """What is told of an input, and what explains it."""
    return {**{name: row[name] for name in PARTS if name in row}, "why": row.get("says", "")}


def _first(judged: Judged) -> dict[str, Any]:
    return _parts(next(iter([*judged.of("wrong"), *judged.of("flat"), *judged.rows])))


def _of_shape(told: str, problem: Problem) -> dict[str, Any]:
    """Of a gradient of the wrong shape: which input, and whether a transpose or a sum is missing."""
    import re

    found = re.search(
        r"invalid gradient at index (\d+) - got \[([\d, ]*)\] but expected shape compatible with \[([\d, ]*)\]", told
    )
    if not found:
        return {}
    got, wanted = ([int(each) for each in re.findall(r"\d+", found[at])] for at in (2, 3))
    at = int(found[1])
    names = dict(zip(problem.numbers, problem.names, strict=True))
    kind = "transpose" if sorted(got) == sorted(wanted) and got != wanted else None
    kind = kind or ("missing-reduction" if len(got) > len(wanted) else None)
    return {"input": at, "name": names.get(at, f"input {at}"), "explains": kind}


def arguments(subject: Subject, asked: dict[str, Any]) -> tuple[Given, Callable[[int], Given] | None]:
    """The inputs as they are asked for, else a factory beside the function, else worked out; and how to draw others."""
    from .given import FACTORIES
    from .guessing import Search
    from .target import attribute, loaded

    if asked.get("inputs"):
        module, name = loaded(asked["inputs"])
        factory = attribute(module, name, asked["inputs"])
        return _drawn_by(subject, factory, asked["inputs"])
    if asked.get("shapes"):
        return _finite(subject, asked["shapes"]), None
    for name in FACTORIES:
        factory = getattr(subject.module, name, None)
        if _is_factory(factory):
            return _drawn_by(subject, factory, f"{name}() beside it")
    return Search(subject).found(), None


def _drawn_by(subject: Subject, factory: Any, origin: str) -> tuple[Given, Callable[[int], Given]]:
    return from_factory(subject, factory, origin), lambda seed: from_factory(subject, factory, origin, seed)


def _is_factory(found: Any) -> bool:
    """A function that can be called without arguments, or the arguments themselves."""
    import inspect

    import torch

    if isinstance(found, (tuple, list)):
        return any(isinstance(each, torch.Tensor) for each in found)
    if not inspect.isfunction(found):
        return False
    given = inspect.signature(found).parameters.values()
    return all(each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in given)


def _finite(subject: Subject, shapes: str) -> Given:
    """--shapes with numbers from the first domain in which forward gives finite ones."""
    import torch

    from .given import DOMAINS

    all_of_them = [from_shapes(subject, shapes, domain=domain) for domain in DOMAINS]
    for given in all_of_them:
        try:
            outputs = given.problem().outputs()
        except Exception:  # noqa: BLE001, S112 - told with the first one, when it is tried
            continue
        if all(bool(torch.isfinite(each).all()) for each in outputs):
            return given
    return all_of_them[0]
