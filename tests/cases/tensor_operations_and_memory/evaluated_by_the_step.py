"""A step that training and validation share."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model, train_dl, val_dl, opt):
        self.model, self.train_dl, self.val_dl, self.opt = model, train_dl, val_dl, opt
        self.criterion = nn.CrossEntropyLoss()

    def _run_batch(self, batch):
        x, y = batch
        logits = self.model(x)
        return self.criterion(logits, y), (logits.argmax(1) == y).float().mean()

    def train_epoch(self):
        self.model.train()
        for batch in self.train_dl:
            loss, _ = self._run_batch(batch)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def validate(self):
        self.model.eval()
        losses, accs = [], []
        for batch in self.val_dl:
            loss, acc = self._run_batch(batch)  # expect: eval-builds-graph
            losses.append(loss.item())
            accs.append(acc.item())
        return sum(losses) / len(losses), sum(accs) / len(accs)

    def fit(self, n):
        for e in range(n):
            self.train_epoch()
            print(e, self.validate())
