import torch, torch.distributed as dist, os, contextlib
from torch import nn
from torch.nn.parallel import DistributedDataParallel
class Accumulator:
    def __init__(self, every):
        self.every, self.n = every, 0
    def ready(self):
        self.n += 1
        return self.n % self.every == 0
def train(cfg, loader):
    gpu = int(os.environ["LOCAL_RANK"])
    net = DistributedDataParallel(nn.Linear(4, 4).cuda(gpu), device_ids=[gpu])
    opt = torch.optim.SGD(net.parameters(), 0.1)
    acc = Accumulator(cfg.accum)
    for x, y in loader:
        ready = acc.ready()
        with contextlib.nullcontext() if ready else net.no_sync():
            loss = nn.functional.mse_loss(net(x.cuda(gpu)), y.cuda(gpu)) / cfg.accum
            loss.backward()
        if ready:
            opt.step()
            opt.zero_grad()
