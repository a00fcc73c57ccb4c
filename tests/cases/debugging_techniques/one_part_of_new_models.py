"""The optimizer gets one part of a model that nothing has trained before; a run that is resumed takes over both."""

import argparse
from pathlib import Path

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default="runs/first")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    model = Net()
    optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3)  # expect: parameters-not-in-optimizer
    if args.resume:
        state = torch.load(args.out / "last.pt", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for _ in range(10):
        for _ in range(100):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.randint(2, (4,))).backward()
            optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out / "next.pt")
        (args.out / "next.pt").replace(args.out / "last.pt")


if __name__ == "__main__":
    main()
