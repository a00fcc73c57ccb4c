"""Now and then, in a training that goes on where it was left off."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader


def validate(model, dataset, workers):
    with torch.no_grad():
        for x in DataLoader(dataset, batch_size=16, num_workers=workers):
            model(x)


def main(args, batches, dataset):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    first = 0
    if args.resume:
        first = torch.load(args.resume)["step"] + 1
    if args.train:
        for step in range(first, args.steps):
            optimizer.zero_grad()
            model(next(batches)).square().mean().backward()
            optimizer.step()
            if step % args.every == 0 and step > 0:  # every 10000 steps
                validate(model, dataset, 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--resume", default=None, type=str)
    parser.add_argument("--steps", default=100000, type=int)
    parser.add_argument("--every", default=10000, type=int)
    main(parser.parse_args(), iter(DataLoader(torch.randn(99, 4))), torch.randn(99, 4))
