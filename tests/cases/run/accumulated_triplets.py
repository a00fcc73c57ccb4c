"""Triplets, of which each batch runs the model three times, are accumulated, and nothing divides their mean losses."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 8)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
data = TensorDataset(x, x + 0.1 * torch.randn(640, 8), torch.randn(640, 8))
for number, batch in enumerate(DataLoader(data, batch_size=16), 1):
    query, good, bad = (model(each) for each in batch)
    nn.functional.triplet_margin_loss(query, good, bad).backward()  # expect: loss-not-averaged-over-accumulation
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
