"""The model is wrapped under a new name, and trained under the old one."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", local_rank)
model = nn.Linear(4, 4).to(device)
ddp_model = DDP(model, device_ids=[local_rank])
optimizer = torch.optim.AdamW(ddp_model.parameters())
for step in range(100):
    inputs = torch.randn(8, 4, device=device)
    optimizer.zero_grad()
    loss = (model(inputs) - inputs).square().mean()  # expect: wrapper-bypassed
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
if dist.get_rank() == 0:
    torch.save(ddp_model.module.state_dict(), "identity.pt")
