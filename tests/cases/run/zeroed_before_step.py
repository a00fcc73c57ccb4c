"""A trainer clears the gradients between backward and step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def prepare(self):
        self.optimizer.zero_grad()  # expect: zeroed-before-step

    def train_step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.prepare()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
x = torch.randn(320, 8)
trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)))
for batch, target in DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16):
    trainer.train_step(batch, target)
