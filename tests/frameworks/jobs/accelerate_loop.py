"""A loop of one's own with Accelerate: as it should be, or with a fault that the argument names."""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

fault = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)
accelerator = Accelerator(cpu=True)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
loader = DataLoader(data, batch_size=16, shuffle=True)  # fault: unprepared
if fault != "unprepared":
    loader = accelerator.prepare(loader)
model, optimizer = accelerator.prepare(model, optimizer)
model.train()
for epoch in range(4):
    if fault == "eval" and epoch == 0:
        model.eval()  # fault: eval
    for inputs, targets in loader:
        if fault != "zero":
            optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        accelerator.backward(loss)  # fault: zero
        optimizer.step()
accelerator.end_training()
