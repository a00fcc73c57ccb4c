"""What is kept of a forward pass for backward."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.trial.experiment.job.interventions import Interventions


def checkpointing(now: Interventions, _value: float) -> None:
    """Computes the activations of each block of the root module again in backward; refuses where it has none."""
    root = now.call[0]
    blocks = list(_blocks(root, _kinds(root)))
    if len(blocks) < 2:
        now.refuse("its model has no class of blocks that occurs twice")
    for block in blocks:
        block.forward = _checkpointed(block, block.forward)


def _kinds(root: Any) -> set[type]:
    """Classes of blocks: they occur twice or more in ROOT, learn, and are made of modules.

    The checkpoint of a single layer saves nothing: its input is kept. Containers are no blocks: the stages of a ResNet
    are of the same class, and one of them is a fourth of the model.
    """
    from torch import nn

    containers = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
    found: Counter[type] = Counter()
    for part in root.modules():
        is_composed = next(part.children(), None) is not None and next(part.parameters(), None) is not None
        if is_composed and part is not root and type(part) not in containers:
            found[type(part)] += 1
    return {kind for kind, number in found.items() if number > 1}


def _blocks(module: Any, kinds: set[type]) -> Iterator[Any]:
    """The outermost modules in MODULE that are of these KINDS."""
    for part in module.children():
        if type(part) in kinds:
            yield part
        else:
            yield from _blocks(part, kinds)


def _checkpointed(block: Any, forward: Any) -> Any:
    import torch
    from torch.utils.checkpoint import checkpoint

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if block.training and torch.is_grad_enabled():
            return checkpoint(forward, *args, use_reentrant=False, **kwargs)
        return forward(*args, **kwargs)

    return checkpointed
