"""The parent of the ranks loads alone, when they have ended; a rank that loads puts its copy where rank 0 was."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def fit(rank, world, path):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29534", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    net = nn.Linear(3, 1).to(rank)
    net.load_state_dict(torch.load("last.pt", weights_only=True))  # expect: loads-to-saved-device
    model = nn.parallel.DistributedDataParallel(net, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(2, 3, device=rank)).mean().backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.module.state_dict(), path)
        torch.save(model.module.state_dict(), "last.pt")
    dist.destroy_process_group()


@torch.no_grad()
def judge(path):
    model = nn.Linear(3, 1)
    model.load_state_dict(torch.load(path, weights_only=True))
    model = model.to("cuda").eval()
    print(model(torch.ones(1, 3, device="cuda")))


if __name__ == "__main__":
    mp.spawn(fit, args=(torch.cuda.device_count(), "model.pt"), nprocs=torch.cuda.device_count())
    judge("model.pt")
