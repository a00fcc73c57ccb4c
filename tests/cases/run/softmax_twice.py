"""The network ends in a softmax, and the loss takes another."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten())
        self.out = nn.Linear(24, 4)
        self.probabilities = nn.Softmax(dim=-1)

    def forward(self, x):
        features = self.body(x.unsqueeze(1))
        return self.probabilities(self.out(features))  # expect: softmax-before-cross-entropy module probabilities


torch.manual_seed(0)
x = torch.randn(320, 8)
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for batch, target in DataLoader(TensorDataset(x, x[:, :4].argmax(1)), batch_size=16):
    optimizer.zero_grad()
    loss = criterion(model(batch), target)
    loss.backward()
    optimizer.step()
