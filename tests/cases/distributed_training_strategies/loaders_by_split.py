import os
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler as DSampler

class Speech(Dataset):
    def __init__(self, manifest):
        self.rows = open(manifest).read().splitlines()
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        return torch.load(self.rows[i], weights_only=True)

def loaders_for(cfg):
    out = {}
    for split in ("train", "dev"):
        data = Speech(cfg[split])
        sampler = DSampler(data) if split == "train" else DSampler(data, shuffle=False)  # expect: sampler-epoch-not-set
        out[split] = DataLoader(data, batch_size=cfg["bs"], sampler=sampler, num_workers=4)
    return out

class Recipe:
    def __init__(self, cfg):
        self.cfg = cfg
        self.gpu = int(os.environ["LOCAL_RANK"])
        self.loaders = loaders_for(cfg)
        self.asr = nn.parallel.DistributedDataParallel(nn.GRU(80, 64).cuda(self.gpu), device_ids=[self.gpu])
        self.opt = optim.Adam(self.asr.parameters())
        self.epoch = 0
    def one_epoch(self):
        loader = self.loaders["train"]
        for i, batch in enumerate(loader):
            out, _ = self.asr(batch["x"].cuda(self.gpu))
            loss = nn.functional.mse_loss(out, batch["y"].cuda(self.gpu))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
    def run(self):
        while self.epoch < self.cfg["epochs"]:
            self.one_epoch()
            self.epoch += 1
            if dist.get_rank() == 0:
                torch.save(self.asr.module.state_dict(), f"asr{self.epoch}.pt")
