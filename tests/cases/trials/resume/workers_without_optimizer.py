# command: train.py {leg}/states
# options: --stop-after 10
# expect: resume-differs optimizer
"""Loader workers that augment, a list that is shuffled by hand, early stopping, a checkpoint of each epoch in its folder."""

import pathlib
import random
import sys

import torch
from torch import nn


class Words(torch.utils.data.Dataset):
    def __init__(self, order):
        self.order = order

    def __len__(self):
        return len(self.order)

    def __getitem__(self, at):
        base = torch.arange(6, dtype=torch.float32) * 0.1 + self.order[at]
        return base + 0.1 * torch.rand(6), torch.tensor([float(self.order[at] % 3)])


class Stopper:
    def __init__(self, patience):
        self.patience, self.bad, self.best_loss = patience, 0, float("inf")

    def over(self, value):
        self.bad = 0 if value < self.best_loss else self.bad + 1
        self.best_loss = min(value, self.best_loss)
        return self.bad > self.patience


def run(folder):
    torch.manual_seed(2)
    random.seed(2)
    model = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.8, nesterov=True)
    words = list(range(24))
    stopper = Stopper(50)
    begin = 0
    found = sorted(folder.glob("epoch-*/state.pt"))
    if found:
        state = torch.load(found[-1], weights_only=False)
        model.load_state_dict(state["model"])
        begin = state["epoch"] + 1
        words = state["words"]
        stopper.bad, stopper.best_loss = state["stopper"]
        random.setstate(state["random"])
        torch.set_rng_state(state["torch"])
    for epoch in range(begin, 4):
        random.shuffle(words)
        losses = []
        for x, y in torch.utils.data.DataLoader(Words(words), batch_size=6, num_workers=2):
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        over = stopper.over(sum(losses))
        place = folder / f"epoch-{epoch}"
        place.mkdir(parents=True, exist_ok=True)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "words": words,
                    "stopper": (stopper.bad, stopper.best_loss), "random": random.getstate(),
                    "torch": torch.get_rng_state()}, place / "state.pt")
        if over:
            break


run(pathlib.Path(sys.argv[1]))
