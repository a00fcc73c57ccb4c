"""Tensor parallelism: the layers are divided, so both ranks see the same batches on purpose."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
loader = DataLoader(data, batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.inner = nn.Linear(8, 64)
        self.outer = nn.Linear(64, 2)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(self.norm(x))))


model = parallelize_module(Net(), mesh, {"inner": ColwiseParallel(), "outer": RowwiseParallel()})
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
dist.destroy_process_group()
