"""A loop of one's own with DeepSpeed and ZeRO's first stage, as it should be."""

import argparse

import deepspeed
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
parser.parse_args()
deepspeed.init_distributed("gloo")
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
config = {
    "train_micro_batch_size_per_gpu": 16,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
}
engine, optimizer, _, _ = deepspeed.initialize(
    model=model, optimizer=torch.optim.AdamW(model.parameters(), 1e-2), config=config
)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(engine(inputs), targets)
        engine.backward(loss)
        engine.step()
