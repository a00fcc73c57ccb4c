import os, torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler
from torch.nn.parallel import DistributedDataParallel as DDP
class AverageMeter:
    def __init__(self): self.sum, self.n = 0.0, 0
    def update(self, v, n=1): self.sum += v * n; self.n += n
    @property
    def avg(self): return self.sum / self.n
@torch.no_grad()
def validate(net, loader, dev):
    net.eval()
    top1 = AverageMeter()
    for x, y in loader:
        out = net(x.to(dev))
        top1.update((out.argmax(1) == y.to(dev)).float().mean().item(), len(y))
    t = torch.tensor([top1.sum, top1.n], device=dev); dist.all_reduce(t); return (t[0] / t[1]).item()
def main():
    dist.init_process_group("nccl")
    dev = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    val = TensorDataset(torch.randn(100, 4), torch.randint(0, 2, (100,)))
    vl = DataLoader(val, 10, sampler=DistributedSampler(val, shuffle=False))
    net = DDP(nn.Linear(4, 2).to(dev), device_ids=[dev.index])
    acc = validate(net, vl, dev)
    if dist.get_rank() == 0:
        print("acc", acc)
main()
