"""Each parameter is averaged by a collective of its own: a hundred small ones for each step, each with its latency."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
world = dist.get_world_size()
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(24, 24)

    def forward(self, x):
        return x + torch.tanh(self.inner(x)) / 8


model = nn.Sequential(*[Block() for _ in range(40)], nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
draw = torch.Generator().manual_seed(dist.get_rank())


def synchronise():
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # expect: communication-bound
        parameter.grad /= world


for _ in range(45):
    x = torch.randn(16, 24, generator=draw)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    synchronise()
    optimizer.step()
dist.destroy_process_group()
