"""A softmax at the end of the network, and nll_loss, which expects log-probabilities."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 8)
y = x[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
criterion = nn.NLLLoss()
for _ in range(4):
    for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = criterion(model(inputs), targets)  # expect: wrong-loss-input
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
