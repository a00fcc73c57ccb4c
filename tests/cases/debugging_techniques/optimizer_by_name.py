"""The name of an optimizer is no optimizer."""

import lightning as L
import torch
from torch import nn


class Ensemble(L.LightningModule):
    def __init__(self, optimizer: str = "sgd", learning_rate: float = 0.03, members: int = 3):
        super().__init__()
        self.optimizer, self.learning_rate = optimizer, learning_rate
        self.encoders = nn.ModuleList([nn.Linear(4, 4) for _ in range(members)])

    def training_step(self, batch, batch_idx):
        x, y = batch
        total = 0
        for encoder in self.encoders:
            total += nn.functional.cross_entropy(encoder(x), y)
        return total

    def configure_optimizers(self):
        if self.optimizer == "sgd":
            return torch.optim.SGD(self.parameters(), self.learning_rate)
        return torch.optim.Adam(self.parameters(), self.learning_rate)
