"""A closure that smooths the loss."""

from collections import namedtuple

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

Parts = namedtuple("Parts", "net criterion optim loader")


def build(width=64, lr=3e-4):
    x = torch.randn(4096, 24)
    y = (x[:, :3].sum(1) > 0).long()
    net = nn.Sequential(nn.Linear(24, width), nn.GELU(), nn.Linear(width, 2))
    return Parts(
        net,
        nn.CrossEntropyLoss(label_smoothing=0.05),
        torch.optim.AdamW(net.parameters(), lr=lr),
        DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True),
    )


def make_smoother(beta):
    value = None

    def push(new):
        nonlocal value
        value = new if value is None else beta * value + (1 - beta) * new
        return value

    return push


def fit(parts, epochs, device):
    parts.net.to(device)
    smooth = make_smoother(0.98)
    for epoch in range(epochs):
        parts.net.train()
        bar = tqdm(parts.loader, desc=f"epoch {epoch}")
        for i, (xb, yb) in enumerate(bar):
            xb, yb = xb.to(device), yb.to(device)
            parts.optim.zero_grad()
            objective = parts.criterion(parts.net(xb), yb)
            objective.backward()
            parts.optim.step()
            shown = smooth(objective)  # expect: graph-retained
            if i % 20 == 0:
                bar.set_postfix(loss=f"{float(shown):.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    fit(build(), epochs=5, device=torch.device("cuda" if torch.cuda.is_available() else "cpu"))
