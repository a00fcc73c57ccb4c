"""Documents sorted by length and cut in two: rank 1 has all the long ones, and its steps take several times as long."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
draw = torch.Generator().manual_seed(0)
lengths = torch.randint(4, 120, (1280,), generator=draw).sort().values
share = lengths[rank * 640 : (rank + 1) * 640]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.cell = nn.GRU(32, 48, batch_first=True)
        self.out = nn.Linear(48, 2)

    def forward(self, tokens):
        _, last = self.cell(self.embed(tokens))  # expect: straggler rank 1
        return self.out(last[0])


torch.manual_seed(0)
model = DistributedDataParallel(Reader())
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
own = torch.Generator().manual_seed(rank)
for step in range(80):
    longest = int(share[(step * 8) % 640 : (step * 8) % 640 + 8].max())
    tokens = torch.randint(0, 50, (8, longest), generator=own)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens), (tokens[:, 0] > 25).long()).backward()
    optimizer.step()
dist.destroy_process_group()
