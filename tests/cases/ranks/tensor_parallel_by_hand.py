"""Layers are divided among the ranks, which see the same batches on purpose; the norm is clipped on all."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        whole = part.clone()
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, whole):
        return whole.clone()

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class Block(nn.Module):
    """Its norm is the same on all ranks; of the two layers after it each rank has a part."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        torch.manual_seed(1 + rank)
        self.up, self.down = nn.Linear(8, 2048, bias=False), nn.Linear(2048, 2, bias=False)

    def forward(self, inputs):
        return Gathered.apply(self.down(self.up(Copied.apply(self.norm(inputs))).relu()))


torch.manual_seed(0)
data = TensorDataset(x, (x[:, 0] > 0).long())
loader = DataLoader(data, batch_size=128, shuffle=True, generator=torch.Generator().manual_seed(0))
model = Block()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
step = 0
for epoch in range(20):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_([model.norm.weight, model.norm.bias], 0.01)
        optimizer.step()
        step += 1
dist.destroy_process_group()
