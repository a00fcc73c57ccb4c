"""The auxiliary head takes no part in the loss: DistributedDataParallel waits for its gradients and gives up."""
# ranks: 2
# exits: 1

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 24)
        self.head = nn.Linear(24, 1)
        self.auxiliary = nn.Linear(24, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), 0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(40):
    x = torch.randn(16, 12, generator=draw)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :1])  # expect: unused-parameters module auxiliary
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
