"""What the graph of a loss tells: whether it was scaled, which parameters it uses in float16, how it was reduced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.multiprocessing.reductions import StorageWeakRef

    Memory = tuple[StorageWeakRef, int]

LARGE = 64.0  # a factor on a loss that is no weight of one of its terms any more: the loss was scaled by hand
TOP = 24  # nodes below a loss in which a scaling by hand would stand
PRODUCTS = ("AddmmBackward", "MmBackward", "BmmBackward", "LinearBackward", "ConvolutionBackward", "BaddbmmBackward")
NODES = 4000  # of a graph that are looked at: some milliseconds


def nodes(root: Any, most: int) -> Iterator[Any]:
    """The first MOST nodes of a graph, those nearest to ROOT first."""
    waiting = [] if root is None else [root]
    seen = set(waiting)
    for node in waiting:
        yield node
        if len(waiting) < most:
            new = {each for each, _ in node.next_functions if each is not None} - seen
            seen |= new
            waiting += new


def by_hand(root: Any) -> bool:
    """Whether ROOT may have been multiplied by a scale of the script's own: by a large factor, or an unknown one."""
    for node in nodes(root, TOP):
        name = node.name()
        if name.startswith(("MulBackward", "DivBackward")):
            factor = _factor(node)
            if factor is None or max(factor, 1 / factor if factor else 0.0) >= LARGE:
                return True
        elif not name.startswith(
            ("AddBackward", "SubBackward", "ToCopyBackward", "NegBackward", "SumBackward", "Stack")
        ):
            return False
    return False


def _factor(node: Any) -> float | None:
    """The number by which NODE multiplies or divides; 1 where two terms with a graph meet, None when it is unknown."""
    others = [value for value in (_saved(node, "_saved_other"), _saved(node, "_saved_self")) if value is not None]
    if sum(each is not None for each, _ in node.next_functions) > 1:
        return 1.0
    if len(others) != 1:
        return None
    if hasattr(others[0], "numel") and (others[0].numel() != 1 or others[0].device.type != "cpu"):
        return None
    return abs(complex(others[0]))  # a plain number where C++ divided: for smoothed labels; it may be complex


def _saved(node: Any, name: str) -> Any:
    try:
        return getattr(node, name, None)
    except RuntimeError:  # freed by an earlier backward, or changed in place since
        return None


def formats(root: Any) -> tuple[dict[str, list[Any]], set[str]]:
    """What the graph of ROOT casts to a shorter format, float32 parameters by format; and all its tensors' formats.

    A compiled part is opaque: its parameters stand under "compiled".
    """
    import torch

    cast: dict[str, list[Any]] = {}
    found: set[str] = set()
    for node in nodes(root, NODES):
        made = [str(each.dtype).removeprefix("torch.") for each in getattr(node, "_input_metadata", ())]
        found.update(made)
        name = node.name()
        compiled = name.startswith("CompiledFunctionBackward")
        if compiled or (name.startswith("ToCopyBackward") and made and made[0] != "float32"):
            below = [each.variable for each, _ in node.next_functions if hasattr(each, "variable")]
            own = [each for each in below if each.dtype is torch.float32]
            cast.setdefault("compiled" if compiled else made[0], []).extend(own)
    return cast, found


def products(root: Any) -> int:
    """How many matrix products and convolutions the graph of ROOT holds."""
    return sum(node.name().startswith(PRODUCTS) for node in nodes(root, NODES))


def undivided(top: Any) -> tuple[str, Memory | None]:
    """The kind of a loss that is a mean and nothing else, and where its targets lie; ("", None) for all others.

    A sum counts as a mean when one of its terms is a mean made by a loss function, and no term is divided.
    """
    top = _below_casts(top)
    if top is None:
        return "", None
    kind, target = _mean(top)
    if kind or not top.name().startswith("AddBackward"):
        return kind, target
    terms = [_below_casts(each) for each, _ in top.next_functions]
    means = [found for each in terms if each is not None and (found := _mean(each))[0] not in {"", "Mean"}]
    divided = any(each is not None and each.name().startswith(("DivBackward", "AddBackward")) for each in terms)
    return (f"{means[0][0]} in a sum", means[0][1]) if means and not divided else ("", None)


def _mean(node: Any) -> tuple[str, Memory | None]:
    name = node.name().removesuffix("0").removesuffix("Backward")
    if node.name() == "MeanBackward0":
        return name, None
    if _saved(node, "_saved_reduction") != 1:
        return "", None
    target = _saved(node, "_saved_target")
    return name, memory(target) if hasattr(target, "data_ptr") else None


def memory(tensor: Any) -> Memory | None:
    """Where TENSOR lies: as long as one keeps this, nothing that is allocated later is equal to it, in the same place
    or not. None for what has no memory of its own: fakes, sparse ones, those inside torch.func.
    """
    from torch.multiprocessing.reductions import StorageWeakRef

    try:
        address = int(tensor.data_ptr())
        return (StorageWeakRef(tensor.untyped_storage()), address) if address else None
    except RuntimeError:
        return None


def _below_casts(node: Any) -> Any:
    """What NODE only casts, or multiplies by one."""
    while node is not None and (node.name().startswith("ToCopyBackward") or _by_one(node)):
        node = next(each for each, _ in node.next_functions if each is not None)
    return node


def _by_one(node: Any) -> bool:
    alone = sum(each is not None for each, _ in node.next_functions) == 1
    return alone and node.name().startswith(("MulBackward", "DivBackward")) and _factor(node) == 1.0
