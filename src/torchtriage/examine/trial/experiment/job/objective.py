"""Which function gives the loss of a step, and whether right answers cost nothing there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchtriage.examine.run.job.job import Job

    from .delivery import Delivered
    from .events import Influence
    from .sequences import Later

NEAR = 6  # operations between a loss function and what backward is called on: a division, a mean, a cast
DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
IGNORED = -100  # the target that torch leaves out by default


class Objective:
    """Follows the functions of loss during one step; `completed` adds to FOUND what they were given.

    delivered: by a loader, None where there is none: then a batch is drawn anew by setting generators back.
    """

    def __init__(self, job: Job, found: Influence, later: Later | None, delivered: Delivered | None) -> None:
        import torch

        self.found, self.later, self.delivered = found, later, delivered
        self.losses: list[tuple[str, Any]] = []
        own: Any = getattr(torch._C, "_nn")  # noqa: B009 - the stubs leave it out
        self._follow(job, own, "cross_entropy_loss", self._entropy)
        self._follow(job, own, "nll_loss_nd", lambda args: not args[1].is_floating_point())
        self._follow(job, own, "binary_cross_entropy", _is_yes_or_no)
        self._follow(job, torch, "binary_cross_entropy_with_logits", _is_yes_or_no)
        for name in DISTANCES:
            self._follow(job, own, name, self._distance)

    def completed(self, roots: Sequence[Any]) -> Influence:
        """What is found, when the backward pass from ROOTS begins, with the function that is all of the loss."""
        import torch

        for root in roots:
            node = root.grad_fn if isinstance(root, torch.Tensor) else None
            for _ in range(NEAR):
                for name, other in self.losses:
                    if node is not None and node is other:
                        return replace(self.found, objective=name)
                below = [each for each, _ in getattr(node, "next_functions", ()) if each is not None]
                node = below[0] if len(below) == 1 else None
        return self.found

    def _follow(self, job: Job, owner: Any, name: str, is_free: Callable[[tuple[Any, ...]], bool]) -> None:
        """IS_FREE says whether right answers cost nothing, from the arguments of a call."""

        def followed(original: Any) -> Any:
            def loss(*args: Any, **kwargs: Any) -> Any:
                given = (*args, *kwargs.values())
                value = original(*args, **kwargs)
                if (
                    len(given) > 1
                    and isinstance(given[1], type(value))
                    and is_free(given)
                    and value.grad_fn is not None
                ):
                    self.losses.append((name, value.grad_fn))
                return value

            return loss

        job.wrap(owner, name, followed)

    def _entropy(self, given: tuple[Any, ...]) -> bool:
        """input, target, weight, reduction, ignore_index, label_smoothing."""
        target, ignored, smoothing = given[1], (given[4:5] or (IGNORED,))[0], (given[5:6] or (0.0,))[0]
        if self.later is not None:
            later, shifted = self.later.judged_by(target, ignored)
            self.found = replace(self.found, later=later, shifted=shifted)
            self.later = None
        return not target.is_floating_point() and not smoothing

    def _distance(self, given: tuple[Any, ...]) -> bool:
        """Noise that is drawn anew in each step cannot be learned by heart: targets of a loader can."""
        import torch

        target = given[1]
        if self.delivered is None:
            return True
        flat = [each.reshape(-1) for each in self.delivered.tensors if each.numel() == target.numel()]
        return any(torch.equal(each.to(target.dtype), target.reshape(-1)) for each in flat)


def _is_yes_or_no(given: tuple[Any, ...]) -> bool:
    target = given[1]
    return bool(((target == 0) | (target == 1)).all())
