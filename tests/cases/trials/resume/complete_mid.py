# command: train.py
# options: --stop-after 11 --resume-args=--resume
# complete
"""A trainer that saves within its epochs: it keeps the generators as the epoch began, and how many batches it has had."""

import os
import random
import sys

import torch
from torch import nn


class Trainer:
    def __init__(self, folder):
        torch.manual_seed(5)
        random.seed(5)
        self.path = os.path.join(folder, "last.pt")
        self.net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.1), nn.Linear(12, 2))
        self.optim = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optim, 40)
        draw = torch.Generator().manual_seed(2)
        data = torch.utils.data.TensorDataset(torch.randn(40, 6, generator=draw), torch.randint(0, 2, (40,), generator=draw))
        self.own = random.Random(11)
        self.loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
        self.epoch = self.done = self.global_step = 0
        self.accumulate = 2
        self.at_start = None
        self.late = None

    def save(self):
        state = {
            "net": self.net.state_dict(), "optim": self.optim.state_dict(), "schedule": self.schedule.state_dict(),
            "epoch": self.epoch, "done": self.done, "global_step": self.global_step, "own": self.own.getstate(),
            "at_start": self.at_start, "now": torch.get_rng_state(), "python": random.getstate(),
            "grads": [each.grad for each in self.net.parameters()],
        }
        torch.save(state, self.path + ".part")
        os.replace(self.path + ".part", self.path)

    def load(self):
        state = torch.load(self.path, weights_only=False)
        self.net.load_state_dict(state["net"])
        self.optim.load_state_dict(state["optim"])
        self.schedule.load_state_dict(state["schedule"])
        self.epoch, self.global_step = state["epoch"], state["global_step"]
        self.done = state["done"]
        self.own.setstate(state["own"])
        random.setstate(state["python"])
        for each, grad in zip(self.net.parameters(), state["grads"]):
            each.grad = grad
        self.at_start, self.late = state["at_start"], state["now"]

    def batches(self):
        late = self.late
        if late is None:
            self.at_start = torch.get_rng_state()
        else:
            torch.set_rng_state(self.at_start)
        taken = iter(self.loader)
        for _ in range(self.done):
            next(taken)
        if late is not None:
            torch.set_rng_state(late)
            self.late = None
        for batch in taken:
            yield batch

    def fit(self, epochs):
        while self.epoch < epochs:
            for inputs, labels in self.batches():
                inputs = inputs * (1 + 0.1 * self.own.random())
                loss = nn.functional.cross_entropy(self.net(inputs + 0.01 * torch.randn_like(inputs)), labels)
                (loss / self.accumulate).backward()
                self.done += 1
                if self.done % self.accumulate == 0:
                    self.optim.step()
                    self.schedule.step()
                    self.optim.zero_grad()
                    self.global_step += 1
                if self.done % 3 == 0:
                    self.save()
            self.epoch, self.done = self.epoch + 1, 0


trainer = Trainer(".")
if "--resume" in sys.argv:
    trainer.load()
trainer.fit(4)
