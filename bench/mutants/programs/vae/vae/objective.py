from torch import Tensor
from torch.nn import functional as F

from .model import VAEOutput


def elbo_terms(out: VAEOutput, target: Tensor) -> tuple[Tensor, Tensor]:
    """Reconstruction and KL terms, both summed over an image and averaged over the batch, in nats."""
    recon = F.binary_cross_entropy_with_logits(out.logits, target, reduction="none").sum(dim=(1, 2, 3))
    kl = 0.5 * (out.mean.square() + out.logvar.exp() - 1.0 - out.logvar).sum(dim=1)
    return recon.mean(), kl.mean()


class KLSchedule:
    """The weight of the KL term: rises in a line to 1 within `warmup` steps."""

    def __init__(self, warmup: int) -> None:
        self.warmup = warmup
        self.step_count = 0

    @property
    def weight(self) -> float:
        return min(1.0, (self.step_count + 1) / self.warmup)

    def step(self) -> None:
        self.step_count += 1

    def state_dict(self) -> dict:
        return {"step_count": self.step_count}

    def load_state_dict(self, state: dict) -> None:
        self.step_count = state["step_count"]
