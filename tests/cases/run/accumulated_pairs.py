"""A siamese network, given both sides of a pair by name, accumulates mean losses that nothing divides."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self):
        self.left = torch.randn(640, 8)
        self.sign = (torch.rand(640) > 0.5).float() * 2 - 1

    def __len__(self):
        return len(self.left)

    def __getitem__(self, index):
        return {"left": self.left[index], "right": self.left[index] * self.sign[index], "sign": self.sign[index]}


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for number, pair in enumerate(DataLoader(Pairs(), batch_size=16, shuffle=True), 1):
    loss = nn.functional.cosine_embedding_loss(model(pair["left"]), model(pair["right"]), pair["sign"])
    loss.backward()  # expect: loss-not-averaged-over-accumulation
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
