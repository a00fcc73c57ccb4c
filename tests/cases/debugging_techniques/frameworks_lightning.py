"""Lightning propagates what training_step returns."""

import lightning as L
from torch import nn


class Twice(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 2)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss.backward()  # expect: framework-bypassed
        return {"loss": loss}


class Once(L.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        penalty = self.net.weight.square().sum()
        penalty.backward()
        return nn.functional.cross_entropy(self.net(x), y)


class Loop:
    def training_step(self, batch, index):
        loss = self.compute(batch)
        loss.backward()
        return loss
