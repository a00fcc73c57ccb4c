"""What makes a wrong gradient right: a factor, a sign, a transpose, another input's, a sum that is missing, a term."""

from __future__ import annotations

from itertools import permutations
from math import isnan
from typing import TYPE_CHECKING, Any

from .problem import flat
from .slopes import Moves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .judging import Judged, Row
    from .problem import Problem

ALIKE = 2e-3
"""Relative to the largest entry: an explanation has to hold for all entries that were compared."""
FEW = 3
"""Entries from which on a term that fits all of them is no coincidence."""


def explained(problem: Problem, row: Row, judged: Judged) -> Row:
    """{"explains": kind, "says": words}, and "factor" where it is one; nothing where nothing explains all entries."""
    gradient = judged.gradients[row["place"]]
    here, truth = row["positions"], row["truth"]
    found = flat(gradient)
    numbers = [float(found[at]) for at in here]
    if not any(numbers):
        return {"explains": "cut", "says": "backward gives 0 for all entries: the graph is cut, or the term is missing"}
    if not any(truth):
        return {"explains": "independent", "says": "the output does not depend on this input"}
    for kind, words, candidate in _candidates(problem, row, judged):
        if _alike([float(candidate[at]) for at in here], truth):
            return {"explains": kind, "says": words}
    factor = _factor(numbers, truth)
    if factor is not None:
        return _as_factor(problem, row, factor)
    return _beyond(problem, row, judged, numbers)


def _factor(numbers: Sequence[float], truth: Sequence[float]) -> float | None:
    """What all of TRUTH are multiplied by to give NUMBERS; None where the entries differ in that."""
    large = max(range(len(truth)), key=lambda at: abs(truth[at]))
    if not truth[large] or not numbers[large]:
        return None
    factor = numbers[large] / truth[large]
    return factor if _alike(numbers, [factor * each for each in truth]) else None


def _alike(one: Sequence[float], two: Sequence[float]) -> bool:
    bound = ALIKE * max((abs(each) for each in two if not isnan(each)), default=0.0)
    return all(abs(a - b) <= bound for a, b in zip(one, two, strict=True))


def _as_factor(problem: Problem, row: Row, factor: float) -> Row:
    """A factor, in words: what it may come from."""
    told: Row = {"factor": factor}
    if abs(factor + 1) < ALIKE:
        return {"explains": "sign", "says": "all entries have the wrong sign", **told}
    words = f"all entries are {factor:.4g} times what they should be"
    value = problem.values[row["place"]]
    sizes = {f"the {value.numel()} numbers of {row['name']}": value.numel()}
    for out in problem.outputs():
        sizes |= {f"dimension {at} of the output ({size})": size for at, size in enumerate(out.shape)}
        sizes[f"the {out.numel()} numbers of the output"] = out.numel()
    for what, size in sizes.items():
        if size > 1 and abs(factor * size - 1) < ALIKE:
            return {"explains": "factor", "says": f"{words}: a mean over {what}, where a sum belongs", **told}
        if size > 1 and abs(factor / size - 1) < ALIKE:
            return {"explains": "factor", "says": f"{words}: a sum over {what}, where a mean belongs", **told}
    return {"explains": "factor", "says": words, **told}


def _candidates(problem: Problem, row: Row, judged: Judged) -> Iterator[tuple[str, str, Any]]:
    """(kind, words, the whole gradient as it would be), the likeliest first."""
    gradient, value = judged.gradients[row["place"]], problem.values[row["place"]]
    for other in judged.rows:
        theirs = judged.gradients[other["place"]]
        if other is not row and theirs is not None and theirs.numel() == gradient.numel():
            yield "swapped", f"it is what backward gives for {other['name']}: the two are swapped", flat(theirs)
    yield from (("transpose", words, flat(turned)) for words, turned in _turned(gradient, value))


def _turned(gradient: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """GRADIENT with its dimensions in another order, and its numbers read in another order."""
    if 2 <= gradient.dim() <= 4:
        for order in permutations(range(gradient.dim())):
            turned = gradient.permute(order)
            if order != tuple(range(gradient.dim())):
                if turned.shape == value.shape:
                    yield f"its dimensions are permuted: {order} puts them right", turned
                yield "it is read in the order of a transposed tensor", turned.reshape(value.shape)
                back = gradient.reshape(turned.shape).permute([order.index(at) for at in range(len(order))])
                if back.shape == value.shape:
                    yield "it is written in the order of a transposed tensor", back
    for at in range(gradient.dim()):
        yield f"dimension {at} is reversed", gradient.flip(at)


def _beyond(problem: Problem, row: Row, judged: Judged, numbers: Sequence[float]) -> Row:
    """What takes further differences: a sum over a broadcast dimension, a factor or term that stands in the tensors."""
    part = _part_of_sum(problem, row, judged, numbers)
    if part:
        return {"explains": "missing-reduction", "says": part}
    for name, tensor in _tensors(problem, row, judged) if len(numbers) >= FEW else ():
        term = _term(numbers, row["truth"], [float(tensor[at]) for at in row["positions"]])
        if term:
            return {"explains": "term", "says": f"in each entry {term}: {name}"}
    if _ignores(problem, row, judged):
        return {"explains": "term", "says": "it does not depend on grad_output: the chain rule's factor is missing"}
    if row["differ"] < row["judged"]:
        return {"explains": None, "says": f"{row['differ']} of {row['judged']} entries are wrong, the others right"}
    return {"explains": None, "says": "no factor, sign, transpose or sum explains all entries"}


def _term(numbers: Sequence[float], truth: Sequence[float], here: Sequence[float]) -> str:
    """What HERE, the entries of a tensor, are to NUMBERS that should be TRUTH."""
    rest = [b - a for a, b in zip(numbers, truth, strict=True)]
    found = {
        "a factor is missing": _alike([a * b for a, b in zip(numbers, here, strict=True)], truth),
        "there is one factor too many": _alike(numbers, [a * b for a, b in zip(truth, here, strict=True)]),
        "a summand is missing": _alike(rest, here),
        "there is one summand too many": _alike(rest, [-each for each in here]),
    }
    return next((words for words, fits in found.items() if fits), "")


def _part_of_sum(problem: Problem, row: Row, judged: Judged, numbers: Sequence[float]) -> str:
    """Whether backward counts one slice only of what should be summed up."""
    size = problem.values[row["place"]].numel()
    larger = [(place, by) for place, by in enumerate(judged.weights) if by is not None and by.numel() > size]
    for place, by in larger:
        for dim in range(by.dim()):
            for at in sorted({0, by.shape[dim] - 1}) if by.shape[dim] > 1 else ():
                only = [None if each is None else each * 0 for each in judged.weights]
                part: Any = by * 0
                part.select(dim, at).copy_(by.select(dim, at))
                only[place] = part
                moves = Moves(problem, row["place"], only)
                if _alike(numbers, [moves.closer(one).value for one in row["positions"]]):
                    return f"only index {at} of dimension {dim} of the output is counted: the sum over it is missing"
    return ""


def _tensors(problem: Problem, row: Row, judged: Judged) -> Iterator[tuple[str, Any]]:
    """The inputs, the outputs and grad_output, and simple things made of them, as far as they fit this input."""
    value = problem.values[row["place"]]
    named = list(zip(problem.names, problem.values, strict=True))
    named += [(f"output {place}", each) for place, each in enumerate(problem.outputs())]
    grads = [("grad_output", each) for each in judged.weights if each is not None]
    for name, tensor in [*named, *grads]:
        for words, made in _made(name, tensor):
            fitting = _fitted(made, value)
            if fitting is not None:
                yield words, flat(fitting)
            for _, grad in grads if name != "grad_output" else ():
                product = _fitted(made * grad, value) if made.shape == grad.shape else None
                if product is not None:
                    yield f"{words} times grad_output", flat(product)


def _made(name: str, tensor: Any) -> Iterator[tuple[str, Any]]:
    yield name, tensor
    yield f"2 times {name}", 2 * tensor
    yield f"1 - {name}", 1 - tensor
    yield f"1 + {name}", 1 + tensor
    yield f"{name} squared", tensor * tensor
    yield f"1 - {name} squared", 1 - tensor * tensor


def _fitted(tensor: Any, value: Any) -> Any:
    """TENSOR in the shape of VALUE; None where it has another."""
    if tensor.is_complex() != value.is_complex():
        return None
    if tensor.shape == value.shape:
        return tensor
    if tensor.numel() == 1:
        return tensor.reshape(()).expand(value.shape)
    try:
        return tensor.expand(value.shape)
    except RuntimeError:
        return None


def _ignores(problem: Problem, row: Row, judged: Judged) -> bool:
    doubled = [None if each is None else 2 * each for each in judged.weights]
    again = problem.gradients(doubled)[row["place"]]
    gradient = judged.gradients[row["place"]]
    return again is not None and bool((flat(again) == flat(gradient)).all())


def is_symmetric(value: Any) -> bool:
    """Whether an input is a symmetric matrix, whose entries cannot be moved one by one."""
    square = value.dim() >= 2 and value.shape[-1] == value.shape[-2] > 1
    return square and bool((value == value.mT).all())
