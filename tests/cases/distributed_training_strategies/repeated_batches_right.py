import torch, os
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

class Repeater:
    """Gives batches for ever."""
    def __init__(self, loader):
        self.loader = loader
        self.epoch = 0
        self.it = iter(loader)
    def next(self):
        try:
            return next(self.it)
        except StopIteration:
            self.epoch += 1
            self.loader.sampler.set_epoch(self.epoch)
            self.it = iter(self.loader)
            return next(self.it)

def main(total=100000):
    dist.init_process_group("nccl")
    g = int(os.environ["LOCAL_RANK"])
    ds = TensorDataset(torch.randn(4096, 16), torch.randn(4096, 1))
    batches = Repeater(DataLoader(ds, 64, sampler=DistributedSampler(ds)))
    model = DDP(torch.nn.Linear(16, 1).cuda(g), device_ids=[g])
    opt = torch.optim.AdamW(model.parameters())
    for it in range(total):
        x, y = batches.next()
        loss = F.l1_loss(model(x.cuda(g)), y.cuda(g))
        opt.zero_grad(); loss.backward(); opt.step()
main()
