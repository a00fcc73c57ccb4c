"""What the figures of a crash's message work out to."""

from __future__ import annotations

from msgspec.structs import replace

from torchtriage.core.query import Decoded
from torchtriage.routing.meaning import number, shape, told


def matmul_shapes(message: Decoded, text: str) -> Decoded | None:
    """The product of an (a, b) and a (c, d) matrix needs b = c; for a Linear layer, c is its in_features."""
    first, second = shape(message, "mat1"), shape(message, "mat2")
    if not first or not second or len(first) != 2 or len(second) != 2 or not all((*first, *second)):
        return None
    (rows, given), (expected, columns) = first, second
    if given == expected:  # these two multiply: the message was put together from others
        return None
    if given == columns and given != expected:
        why = f"mat2 fits when transposed: {expected}x{columns} would have to be {columns}x{expected}"
    elif rows == expected:
        why = f"mat1 fits when transposed: {rows}x{given} would have to be {given}x{rows}"
    elif rows * given % expected == 0 and (rows % expected == 0 or expected % given == 0):
        why = f"{rows}x{given} holds {rows * given // expected} rows of {expected}: a flatten may be wrong by a factor"
    elif given % expected == 0:
        why = f"{given} is {given // expected} times {expected}: a dimension may have been flattened by mistake"
    else:
        why = f"as a Linear layer, its in_features is {expected} and its input has {given}"
    said = f"A matrix product got {given} features where {expected} were expected; {why}"
    return told(message, said, given=given, expected=expected)


def sizes_must_match(message: Decoded, text: str) -> Decoded | None:
    """Two sizes broadcast where they are equal or one of them is 1."""
    one, other, place = number(message, "a"), number(message, "b"), number(message, "dimension")
    if one is None or other is None or place is None:
        return None
    said = f"Sizes {one:.0f} and {other:.0f} meet in dimension {place:.0f}; they broadcast only where equal or 1"
    large, small = max(one, other), min(one, other)
    if large == small + 1:
        said += ". They differ by one: an odd size was halved and doubled again, or a token was added on one side"
    elif small > 1 and large % small == 0:
        said += f". One is {large / small:.0f} times the other: a stride, a pooling or a reshape is missing on one side"
    return told(message, said)


def modified_in_place(message: Decoded, text: str) -> Decoded | None:
    """Every write in place adds one to a tensor's version; backward needs the one that forward saved."""
    version, expected = number(message, "version"), number(message, "expected")
    if version is None or expected is None or version <= expected:
        return None
    writes = int(version - expected)
    operation = message.fields.get("operation")
    saved = f", the output of {operation}," if operation else ""
    times = "once" if writes == 1 else f"{writes} times"
    said = f"A tensor{saved} was written in place {times} after forward had saved it for backward"
    return told(message, said, writes=writes)


_OF_AN_INDEX = ("index", "Index", "n_classes", "num_classes", "srcSelectDimSize", "numel")


def kernel_assertion(message: Decoded, text: str) -> Decoded | None:
    """Of the assertions in kernels, those that compare an index with the size of its table are about an index."""
    assertion = str(message.fields.get("assertion", ""))
    return None if any(word in assertion for word in _OF_AN_INDEX) else replace(message, faults=())
