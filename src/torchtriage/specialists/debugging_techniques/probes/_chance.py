"""What a classifier's loss costs those who know nothing of the inputs, and those who are given another's answer."""

from __future__ import annotations

from typing import Any

_ROWS = 256  # of a batch, at most, whose answers are handed on
_NUMBERS = 1 << 20  # of logits, at most
_COLUMNS = 64  # of yes-or-no questions, at most, that are told apart


class Guesses:
    """Of one kind of loss: how often each answer was right so far, which is all that a guess can go by."""

    def __init__(self) -> None:
        self.right: Any = None  # weights of the answers, on their device
        self.asked: Any = None  # of yes-or-no questions: how often each was asked
        self.labels = 0

    def cross_entropy(self, logits: Any, target: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        """The costs in nats of guessing by the frequencies of the classes so far, and of guessing evenly."""
        import torch

        classes = logits.shape[1]
        if target.is_floating_point():
            counts = target.detach().movedim(1, -1).reshape(-1, classes).sum(0).float()
        else:
            meant = (target != options.get("ignore_index", -100)).flatten().float()
            counts = torch.zeros(classes, device=logits.device)
            counts.scatter_add_(0, target.flatten().clamp(0, classes - 1), meant)
        weight, eps = options.get("weight"), options.get("label_smoothing") or 0.0
        counts = counts if weight is None else counts * weight.detach()
        counts = (1 - eps) * counts + eps * counts.sum() / classes
        self.labels += target.numel() if not target.is_floating_point() else len(target)
        self.right = counts if self.right is None else self.right + counts
        shares = self.right / self.right.sum().clamp(min=1e-12)
        return -torch.special.xlogy(shares, shares).sum(), torch.log(torch.tensor(float(classes)))

    def yes_or_no(self, target: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        """The same for questions that are each answered by yes or no."""
        import torch

        apart = target.dim() == 2 and target.shape[1] <= _COLUMNS
        rows = target.detach().float() if apart else target.detach().float().reshape(-1, 1)
        worth = options.get("pos_weight")
        yes, no = rows.sum(0), (1 - rows).sum(0)
        yes = yes if worth is None else yes * worth.detach()
        self.labels += rows.numel()
        both = torch.stack([yes, no])
        self.right = both if self.right is None or self.right.shape != both.shape else self.right + both
        self.asked = len(rows) if self.asked is None else self.asked + len(rows)
        shares = self.right / self.right.sum(0).clamp(min=1e-12)
        size = self.right.sum(0) / self.asked
        prior = (-torch.special.xlogy(shares, shares).sum(0) * size).mean()
        return prior, size.mean() * torch.log(torch.tensor(2.0))


def gain(cost: Any, answers: Any, target: Any) -> Any:
    """How much dearer it gets when each target is held against another sample's answer, by COST(answers, target).

    Nothing (0) for who has learned nothing. None where samples cannot be told apart: few of them, or all of a kind.
    """
    import torch

    rows = min(len(answers), _ROWS, max(1, _NUMBERS * len(answers) // max(1, answers.numel())))
    if rows < 4 or len(target) != len(answers):
        return None
    with torch.no_grad():
        mine, wanted = answers.detach()[:rows], target.detach()[:rows]
        others = wanted.roll(rows // 2, 0)
        differ = (others != wanted).any().float()
        return (cost(mine, others) - cost(mine, wanted)) / differ  # not finite where all are of a kind
