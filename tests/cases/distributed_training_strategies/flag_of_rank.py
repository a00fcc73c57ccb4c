"""A flag that is asked of the rank says who saves."""

import os
import subprocess

import hydra
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def slurm_rank():
    return int(os.environ.get('SLURM_NODEID')) * torch.cuda.device_count()


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.net = DistributedDataParallel(torch.nn.Linear(2, 2).to("cuda"))
        self.optimizer = torch.optim.AdamW(self.net.parameters())

    def run_train(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            (self.net(x) - y).square().mean().backward()
            self.optimizer.step()
        save = self.cfg.local_rank in [-1, 0]
        if save:
            self.save()

    def save(self):
        torch.save({"net": self.net.state_dict()}, self.cfg.path)


@hydra.main(config_path="conf", config_name="c")
def main(cfg):
    cfg.local_rank = slurm_rank()
    dist.init_process_group("nccl", rank=cfg.local_rank)
    Trainer(cfg).run_train(torch.load(cfg.data))


if __name__ == "__main__":
    main()
