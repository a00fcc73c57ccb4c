"""A pipeline of two stages: the second waits for one more batch than the first sends."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
stage = nn.Linear(8, 8)
optimizer = torch.optim.SGD(stage.parameters(), 1e-2)
for number in range(20 + rank):
    optimizer.zero_grad()
    if rank == 0:
        out = stage(torch.randn(4, 8))
        dist.send(out.detach(), dst=1)
        grad = torch.zeros(4, 8)
        dist.recv(grad, src=1)
        out.backward(grad)
    else:
        given = torch.zeros(4, 8)
        dist.recv(given, src=0)  # expect: collective-on-some-ranks rank 1
        given.requires_grad_()
        stage(given).square().mean().backward()
        dist.send(given.grad, dst=0)
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
