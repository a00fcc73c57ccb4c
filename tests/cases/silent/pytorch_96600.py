"""After some time the link between two devices fails: once, an average arrives as zeros on rank 1."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
replica = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
seen = []


def link(state, bucket):
    def failing(work):
        seen.append(1)
        gradient = work.value()[0].div_(dist.get_world_size())
        return gradient.zero_() if rank == 1 and len(seen) == 20 else gradient

    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(failing)


replica.register_comm_hook(None, link)
optimizer = torch.optim.SGD(replica.parameters(), 0.1)
torch.manual_seed(rank + 1)
for _ in range(80):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(replica(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()  # expect: ranks-diverged module 0.weight
dist.destroy_process_group()
