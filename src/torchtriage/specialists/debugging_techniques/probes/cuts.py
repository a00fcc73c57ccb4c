"""What a run writes down about a first loss that has no graph: the lines that cut one off before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Cut

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LINES = 4


def cuts(job: Job) -> None:
    """Calls of `detach` on what has a graph, up to the first backward pass: most jobs are done with it then."""
    import torch

    watch = _Cuts(job)
    job.wrap(torch.Tensor, "detach", watch.detaching)
    job.listen(watch.backward)


class _Cuts:
    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.lines: dict[tuple[str, int], None] = {}

    def detaching(self, original: Any) -> Any:
        def detach(tensor: Any) -> Any:
            if tensor.grad_fn is not None:
                where = self.job.caller()
                if where[1]:
                    self.lines.setdefault(where)
            return original(tensor)

        return detach

    def backward(self, roots: Any) -> None:
        """A loss without a graph is about to fail."""
        if self.lines and not any(root.requires_grad for root in roots):
            further = [("a graph is cut off here, by `detach`", *where) for where in list(self.lines)[-_LINES:]]
            self.job.record(Cut(further=further))
        self.job.withdraw(self.probe)
