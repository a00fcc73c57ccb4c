"""What a loader has delivered: its tensors, and which of their dimensions is that of samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

DEPTH = 4  # levels of a batch, or of a model's output, that are searched for tensors


class Delivered:
    """What a loader gave last. samples: it has put together, along the first dimension; None where that is not known.

    is_shuffled: which samples come together is chance.
    """

    def __init__(self, loader: Any, batch: Any) -> None:
        self.tensors = [each for each in tensors(batch) if each.dim()]
        self.samples = _samples(loader, self.tensors)
        self.is_shuffled = loader is not None and _is_shuffled(loader)

    def has_as_large(self, inputs: Sequence[Any]) -> bool:
        """Whether INPUTS may be all that was delivered of them, and something else differs from sample to sample.

        A row of an image, or the first id of a sentence, may well be the same in all of them.
        """
        sizes = {each.numel() for each in self.tensors}
        return any(is_varied(each) for each in self.tensors) and any(each.numel() in sizes for each in inputs)


def tensors(value: Any, depth: int = DEPTH) -> list[Any]:
    """All tensors in VALUE: in its entries and attributes, and in theirs."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if not depth or isinstance(value, (str, bytes, torch.nn.Module)):
        return []
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (tuple, list)):
        parts = list(value)
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    return [each for part in parts for each in tensors(part, depth - 1)]


def _samples(loader: Any, found: Sequence[Any]) -> int | None:
    """Samples in a batch of LOADER, in whose tensors they were FOUND along the first dimension."""
    from torch.utils.data import default_collate

    sizes = {each.shape[0] for each in found}
    if getattr(loader, "collate_fn", None) is default_collate:
        return sizes.pop() if len(sizes) == 1 else None
    size = getattr(loader, "batch_size", None)
    return size if size in sizes else None


def _is_shuffled(loader: Any) -> bool:
    from torch.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

    kinds = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
    return type(loader.batch_sampler) is BatchSampler and isinstance(loader.sampler, kinds)


def is_varied(tensor: Any) -> bool:
    return bool((tensor != tensor[:1]).any())
