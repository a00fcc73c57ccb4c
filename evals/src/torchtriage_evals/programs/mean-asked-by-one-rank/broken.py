"""Logs the loss of a training on several processes: the mean over all of them."""

import torch
import torch.distributed as dist


def log_loss(loss, step, lines):
    """The mean of every rank's LOSS; rank 0 also appends a line for its log. Called by all ranks after each step."""
    mean = torch.tensor(float(loss))
    if dist.get_rank() == 0:
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        lines.append(f"step {step}: {mean.item():.4f}")
    return mean.item()
