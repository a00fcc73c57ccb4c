import os, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Runner:
    def __init__(self, cfg):
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self._wrap()
        self._place()
    def _wrap(self):
        self.model = DDP(self.model)
    def _place(self):
        self.model.to(self.device)  # expect: moved-after-wrapping
        self.opt = torch.optim.Adam(self.model.parameters())
    def train(self, loader):
        for x, y in loader:
            loss = nn.functional.mse_loss(self.model(x.to(self.device)), y.to(self.device))
            self.opt.zero_grad(); loss.backward(); self.opt.step()
