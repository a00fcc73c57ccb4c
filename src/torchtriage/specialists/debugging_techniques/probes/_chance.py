"""What a classifier's loss costs those who know nothing of the inputs, and those who are given another's answer."""

from __future__ import annotations

from typing import Any

_ROWS = 256  # of a batch, at most, whose answers are handed on
_NUMBERS = 1 << 20  # of logits, at most
_VALUES = 1 << 14  # of a regression's targets, at most
_FEW = 8  # targets, at least, whose variance is one
_MASS = 1.5  # rows of log-probabilities add up to 1, but for rounding and what is added against log(0)
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


def least(target: Any, classes: int, options: dict[str, Any]) -> Any:
    """The entropy of the targets themselves, which no cross entropy is below: nothing for plain labels."""
    import torch

    eps = options.get("label_smoothing") or 0.0
    if target.is_floating_point():
        rows = target.detach().movedim(1, -1).reshape(-1, classes)[:_ROWS].float()
        rows = (1 - eps) * rows + eps * rows.sum(-1, keepdim=True) / classes
        return -torch.special.xlogy(rows, rows).sum(-1).mean()
    shares = torch.full((classes,), eps / classes)
    shares[0] += 1 - eps
    return -torch.special.xlogy(shares, shares).sum()


def mass_above_one(answers: Any) -> Any:
    """The share of rows whose exponentials add up to more than probabilities can."""
    rows = answers.detach().movedim(1, -1).reshape(-1, answers.shape[1])[:_ROWS].float()
    return (rows.exp().sum(-1) > _MASS).float().mean()


def share_outside(target: Any) -> Any:
    """The share of answers to yes-or-no questions that are below 0 or above 1."""
    numbers = target.detach().flatten()[:_NUMBERS]
    return ((numbers < 0) | (numbers > 1)).float().mean()


def spread_of(target: Any) -> tuple[Any, Any]:
    """What predicting the mean of a batch's targets costs, by their own variance, and what predicting 0 costs.

    None of a batch of a few.
    """
    rows = target.detach().reshape(len(target), -1) if target.dim() and len(target) >= _FEW else None
    if rows is None or not rows.numel():
        return None, None
    columns = max(1, _VALUES // len(rows))
    rows = rows[:, :: max(1, -(-rows.shape[1] // columns))].float()
    return rows.var(0).mean(), rows.square().mean()
