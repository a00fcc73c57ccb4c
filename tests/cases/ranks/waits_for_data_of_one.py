"""The dataset of rank 1 lies on a slow disk: every sample takes a millisecond, and rank 0 waits for each batch of it."""
# ranks: 2

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Signals(Dataset):
    def __init__(self, mount):
        self.mount = mount
        self.x = torch.randn(1200, 32, generator=torch.Generator().manual_seed(0))

    def read(self, index):
        if self.mount == "slow":
            time.sleep(0.001)  # expect: straggler rank 1
        return self.x[index]

    def __getitem__(self, index):
        signal = self.read(index)
        return signal, (signal.mean() > 0).long()

    def __len__(self):
        return len(self.x)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Signals("slow" if dist.get_rank() == 1 else "fast")
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=12, sampler=sampler)  # expect: input-bound rank 1
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 2)))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


main()
dist.destroy_process_group()
