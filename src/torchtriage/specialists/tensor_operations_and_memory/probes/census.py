"""Bytes on the device in use that have a known holder: parameters, buffers, gradients, states of optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchtriage.examine.run.job.job import Job

BLOCK = 512  # bytes: the allocators of torch round up to them (kMinBlockSize)


class Census:
    """Counts each piece of memory once, for its first holder: views share it, as the buckets of replicas do.

    Of a sharded tensor the part that is here counts.
    """

    def __init__(self, job: Job) -> None:
        import torch

        self._device, self._block = (job.accelerator.kind, BLOCK) if job.accelerator.kind else ("cpu", 1)
        self._tensor, self._plain, self._strided = torch.Tensor, (torch.Tensor, torch.nn.Parameter), torch.strided
        self._is_wrapped: Any = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore[reportAttributeAccessIssue]
        self._seen: set[int] = set()

    def count(self, values: Iterable[Any]) -> int:
        """Bytes of the tensors among VALUES that nobody has counted yet, as the allocator of the device counts them."""
        total = 0
        for piece, size in self._pieces(values):
            if piece not in self._seen:
                self._seen.add(piece)
                total += -(-size // self._block) * self._block
        return total

    def _pieces(self, values: Iterable[Any]) -> Iterator[tuple[int, int]]:
        for value in values:
            each = getattr(value, "_local_tensor", value)
            if not isinstance(each, self._tensor) or each.layout is not self._strided:
                continue
            if each.device.type != self._device or self._is_wrapped(each):  # within torch.func it has no memory
                continue
            if type(each) in self._plain:
                storage = each.untyped_storage()
                yield storage.data_ptr(), storage.nbytes()
            else:  # a wrapper may have no storage of its own
                yield id(each), each.nbytes


def gradients_of(parameters: Iterable[Any]) -> Iterator[Any]:
    """Of leaves only: torch warns who asks another tensor for its gradient."""
    return (each.grad for each in parameters if each.is_leaf)


def parameters_of(job: Job) -> list[Any]:
    """Of all models that have run and of all optimizers; some of them twice."""
    of_models = [each for root in job.roots for each in root.parameters()]
    return of_models + [each for one in job.built for group in one.param_groups for each in group["params"]]


def count_holders(job: Job) -> dict[str, int]:
    """Bytes of parameters, buffers, gradients and states, of all models that have run and of all optimizers."""
    census, roots, optimizers = Census(job), list(job.roots), list(job.built)
    parameters = parameters_of(job)
    states = [state for optimizer in optimizers for state in list(optimizer.state.values()) if isinstance(state, dict)]
    return {
        "parameters": census.count(parameters),
        "buffers": census.count(each for root in roots for each in root.buffers()),
        "gradients": census.count(gradients_of(parameters)),
        "states": census.count(value for state in states for value in state.values()),
    }
