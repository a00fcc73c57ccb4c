import os, torch, torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

def setup(net, rank):
    net = net.to(rank)
    ddp = DistributedDataParallel(net, device_ids=[rank])
    return net, ddp

def train(rank, loader, net, epochs):
    net, ddp = setup(net, rank)
    opt = torch.optim.AdamW(ddp.parameters(), lr=1e-3)
    ddp.train()
    for ep in range(epochs):
        loader.sampler.set_epoch(ep)
        for batch in loader:
            logits = ddp(batch["x"].to(rank))
            loss = F.cross_entropy(logits, batch["y"].to(rank))
            opt.zero_grad()
            loss.backward()
            opt.step()
