"""A resumed training of several ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main(cfg, loader, sampler):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DDP(nn.Linear(4, 4).cuda(), device_ids=[local])
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, s / 100))
    start = 0
    if cfg.resume:
        ck = torch.load(cfg.resume, map_location={"cuda:0": f"cuda:{local}"})  # expect: checkpoint-incomplete
        model.module.load_state_dict(ck["model"])
        opt.load_state_dict(ck["opt"])
        start = ck["epoch"] + 1
    for epoch in range(start, cfg.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad(set_to_none=True)
            nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            opt.step()
            sched.step()
        if local == 0:
            torch.save(
                {
                    "model": model.module.state_dict(),
                    "opt": opt.state_dict(),
                    "sched": sched.state_dict(),
                    "epoch": epoch,
                },
                f"ck{epoch}.pt",
            )
