from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Optimizer

from gnn.graphs import GraphBatch, TargetScaler


def train_one_epoch(
    model: nn.Module,
    batches: Iterable[GraphBatch],
    optimizer: Optimizer,
    scaler: TargetScaler,
    device: torch.device,
    max_grad_norm: float,
) -> dict[str, float]:
    model.train()
    loss_sum = torch.zeros((), device=device)
    norm_sum = torch.zeros((), device=device)
    graphs = steps = 0
    for batch in batches:
        batch = batch.to(device)
        prediction = model(batch)
        loss = F.smooth_l1_loss(prediction, scaler.transform(batch.target))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
        optimizer.step()

        loss_sum += loss.detach() * batch.num_graphs
        norm_sum += norm
        graphs += batch.num_graphs
        steps += 1
    return {"loss": loss_sum.item() / graphs, "grad_norm": norm_sum.item() / steps}


@torch.no_grad()
def evaluate(
    model: nn.Module,
    batches: Iterable[GraphBatch],
    scaler: TargetScaler,
    device: torch.device,
) -> dict[str, float]:
    """Errors in the units of the target."""
    model.eval()
    absolute = torch.zeros((), device=device)
    squared = torch.zeros((), device=device)
    graphs = 0
    for batch in batches:
        batch = batch.to(device)
        error = scaler.inverse(model(batch)) - batch.target
        absolute += error.abs().sum()
        squared += error.square().sum()
        graphs += batch.num_graphs
    return {"mae": absolute.item() / graphs, "rmse": (squared.item() / graphs) ** 0.5}
