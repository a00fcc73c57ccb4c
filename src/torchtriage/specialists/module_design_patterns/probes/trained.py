"""What a run writes down about which parameters of a model are trained at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Trained

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_STEP = 1  # the step after which it is written: what is thawed later is told by another job


def trained(job: Job) -> None:
    """Once, of models with frozen parameters: how many numbers are trained, and how many of these in norm layers."""
    probe = job.placing

    def iterated(step: int) -> None:
        if step >= _STEP:
            job.withdraw(probe)
            for root in list(job.roots):
                _tell(job, root)

    job.listen(iterated)


def _tell(job: Job, root: Any) -> None:
    trained = {id(each): each.numel() for each in root.parameters() if each.requires_grad}
    whole = sum(each.numel() for each in root.parameters())
    if not trained or sum(trained.values()) == whole:
        return
    norms = [part for part in root.modules() if "norm" in type(part).__name__.lower() and not list(part.children())]
    within = {id(each) for part in norms for each in part.parameters(recurse=False)} & trained.keys()
    event = Trained(
        model=type(root).__name__,
        layers=len(norms),
        of=whole,
        trained=sum(trained.values()),
        norms=sum(trained[each] for each in within),
    )
    job.record(event)
