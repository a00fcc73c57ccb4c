"""Rank 1 leaves the epoch early, on a condition that only its own data meet; then all take the mean of the loss."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(model, optimizer, batches):
    total = torch.zeros(1)
    for number, (x, y) in enumerate(batches):
        if number == 30 and y.mean() < 0:
            break
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()  # expect: uneven-steps rank 0
        optimizer.step()
        total += loss.detach()
    return total


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    batches = [(x, x.sum(1, keepdim=True) + 100 - 200 * rank) for x in torch.randn(60, 16, 8)]
    total = train(model, optimizer, batches)
    dist.all_reduce(total)
    print(total.item())


main()
dist.destroy_process_group()
