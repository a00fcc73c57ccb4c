"""The settings come through a decorator, and no rank is asked for."""

import os

import hydra
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def snapshot(cfg, net, epoch):
    target = os.path.join(cfg.run.dir, "last.ckpt")
    torch.save({"net": net.module.state_dict(), "epoch": epoch}, target)  # expect: every-rank-saves


@hydra.main(version_base=None, config_path="conf", config_name="train")
def main(cfg):
    dist.init_process_group(cfg.dist.backend)
    local = int(os.environ["LOCAL_RANK"])
    net = DDP(torch.nn.Linear(8, 8).cuda(local), device_ids=[local])
    for epoch in range(cfg.epochs):
        snapshot(cfg, net, epoch)


if __name__ == "__main__":
    main()
