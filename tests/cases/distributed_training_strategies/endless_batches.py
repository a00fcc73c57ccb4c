import os, torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils import data
from torch.nn.parallel import DistributedDataParallel

def infinite(loader, sampler):
    epoch = 0
    while True:
        for batch in loader:
            yield batch
        epoch += 1

def main():
    dist.init_process_group(backend="nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    ds = data.TensorDataset(torch.randn(1000, 3, 32, 32))
    sampler = data.distributed.DistributedSampler(ds, shuffle=True, drop_last=True)  # expect: sampler-epoch-not-set
    loader = data.DataLoader(ds, batch_size=32, sampler=sampler, num_workers=8)
    stream = infinite(loader, sampler)
    unet = DistributedDataParallel(torch.nn.Conv2d(3, 3, 3, padding=1).cuda(gpu), device_ids=[gpu])
    opt = torch.optim.Adam(unet.parameters())
    for step in range(200000):
        x = next(stream)[0].cuda(gpu)
        noise = torch.randn_like(x)
        loss = F.mse_loss(unet(x + noise), noise)
        loss.backward()
        opt.step()
        opt.zero_grad()
main()
