"""An option asks for a probe whose trunk stays in evaluation mode."""

"""Linear probe: --weights freeze keeps the backbone in eval mode on purpose; the head is one Linear."""
import argparse

import torch
from torch import nn


def main(args, loader, held_out):
    backbone = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    head = nn.Linear(8, 2)
    model = nn.Sequential(backbone, head)
    if args.weights == "freeze":
        backbone.requires_grad_(False)
    groups = [dict(params=head.parameters(), lr=0.3)]
    if args.weights == "finetune":
        groups.append(dict(params=backbone.parameters(), lr=0.01))
    optimizer = torch.optim.SGD(groups, 0, momentum=0.9)
    for epoch in range(10):
        if args.weights == "finetune":
            model.train()
        elif args.weights == "freeze":
            model.eval()
        else:
            assert False
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(sum((model(x).argmax(1) == y).sum().item() for x, y in held_out))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", default="freeze", choices=("finetune", "freeze"))
    data = [(torch.randn(4, 8), torch.randint(2, (4,))) for _ in range(4)]
    main(parser.parse_args(), data, data)
