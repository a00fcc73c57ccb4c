import torch


class IoUMeter:
    """Intersection over union of the foreground, over all pixels seen."""

    def __init__(self, device: torch.device) -> None:
        self.intersection = torch.zeros((), dtype=torch.long, device=device)
        self.union = torch.zeros((), dtype=torch.long, device=device)

    def update(self, logits: torch.Tensor, target: torch.Tensor) -> None:
        pred, truth = logits > 0, target > 0.5
        self.intersection += (pred & truth).sum()
        self.union += (pred | truth).sum()

    def compute(self) -> float:
        return (self.intersection / self.union.clamp(min=1)).item()


class AverageMeter:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def update(self, value: float, n: int = 1) -> None:
        self.total += value * n
        self.count += n

    @property
    def avg(self) -> float:
        return self.total / max(self.count, 1)
