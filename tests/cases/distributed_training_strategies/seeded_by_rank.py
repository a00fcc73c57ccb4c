"""Each rank draws its own batches without end: nothing needs to be divided."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def main(model: nn.Module, inputs: torch.Tensor, steps: int):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1337 + rank)
    replica = DDP(model)
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(inputs), 32, shuffle=True)
    done = 0
    while done < steps:
        for (batch,) in loader:
            optimizer.zero_grad()
            replica(batch).mean().backward()
            optimizer.step()
            done += 1
