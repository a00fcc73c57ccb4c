import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
class Trainer:
    def __init__(self, cfg):
        self.model = nn.Transformer(64)
        self.configure_optimizer()  # expect: optimizer-before-sharding
        self.shard()
    def configure_optimizer(self):
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
    def shard(self):
        self.model = FSDP(self.model, device_id=torch.cuda.current_device())
    def fit(self, loader):
        for x, y in loader:
            loss = self.model(x.cuda(), y.cuda()).mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
