import logging

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader

from .objective import KLSchedule, elbo_terms

log = logging.getLogger(__name__)


def train_one_epoch(
    model: nn.Module,
    loader: DataLoader,
    optimizer: Optimizer,
    scheduler: LRScheduler,
    kl_schedule: KLSchedule,
    device: torch.device,
    epoch: int,
    grad_clip: float,
) -> float:
    model.train()
    running = torch.zeros((), device=device)
    for batch in loader:
        images = batch.to(device, non_blocking=True)
        recon, kl = elbo_terms(model(images), images)
        loss = recon + kl_schedule.weight * kl

        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimizer.step()
        scheduler.step()
        kl_schedule.step()
        running += loss.detach()
    mean_loss = running.item() / len(loader)
    log.info("epoch %d train_loss=%.3f kl_weight=%.2f", epoch, mean_loss, kl_schedule.weight)
    return mean_loss


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, device: torch.device) -> dict[str, float]:
    """The bound with the full weight of the KL term; the noise is the same in every call."""
    model.eval()
    generator = torch.Generator(device).manual_seed(0)
    sums = torch.zeros(2, device=device)
    for batch in loader:
        images = batch.to(device, non_blocking=True)
        recon, kl = elbo_terms(model(images, generator), images)
        sums += torch.stack([recon, kl]) * images.size(0)
    recon, kl = (sums / len(loader.dataset)).tolist()
    return {"recon": recon, "kl": kl, "nelbo": recon + kl}
