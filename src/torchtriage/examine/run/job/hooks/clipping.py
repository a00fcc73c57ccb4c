"""Watches clips of gradients, under whatever name the job imported them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..job import Job


def place(job: Job) -> None:
    """Tells "clipping" at every clip by norm or by value."""
    import torch
    from torch.nn.utils import clip_grad

    def by_norm(original: Any) -> Any:
        def clipping(parameters: Any, max_norm: Any, total_norm: Any, *args: Any, **kwargs: Any) -> Any:
            kept = _listed(parameters)
            job.fire("clipping", "clip_grad_norm_", kept, max_norm, total_norm)
            return original(kept, max_norm, total_norm, *args, **kwargs)

        return clipping

    def returning_norm(original: Any) -> Any:
        def clipping(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            kept = _listed(parameters)
            norm = original(kept, max_norm, *args, **kwargs)
            job.fire("clipping", "clip_grad_norm_", kept, max_norm, norm)
            return norm

        return clipping

    def by_value(original: Any) -> Any:
        def clipping(parameters: Any, clip_value: Any, *args: Any, **kwargs: Any) -> Any:
            kept = _listed(parameters)
            job.fire("clipping", "clip_grad_value_", kept, clip_value, None)
            return original(kept, clip_value, *args, **kwargs)

        return clipping

    if hasattr(clip_grad, "_clip_grads_with_norm_"):
        # clip_grad_norm_ looks this up at every call, so it is seen whatever the job's name for it
        job.wrap(clip_grad, "_clip_grads_with_norm_", by_norm)
    else:
        for owner in (clip_grad, torch.nn.utils):
            job.wrap(owner, "clip_grad_norm_", returning_norm)
    for owner in (clip_grad, torch.nn.utils):
        job.wrap(owner, "clip_grad_value_", by_value)


def _listed(parameters: Any) -> list[Any]:
    """The parameters of a clip, which may be one tensor or a generator that is gone after one look."""
    import torch

    return [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
