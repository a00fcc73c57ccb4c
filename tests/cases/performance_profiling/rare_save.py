"""A save now and then, in a training on an option."""

import argparse

import torch
from torch import nn


def save(model):
    return model.weight.detach().cpu().numpy()


def main(args, batches):
    model = nn.Linear(4, 1)
    first = 0
    if args.resume:
        first = torch.load(args.resume)["step"] + 1
    if args.cuda:
        model = model.cuda()
    for step in range(first, args.steps):
        x = next(batches)
        if args.cuda:
            x = x.cuda()
        model(x).mean().backward()
        if step % args.save_every == 0 and step > 0:  # every 10000 steps
            save(model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--resume", default=None, type=str)
    parser.add_argument("--save_every", default=10000, type=int)
    parser.add_argument("--steps", default=100000, type=int)
    main(parser.parse_args(), iter(torch.utils.data.DataLoader(torch.randn(99, 4))))
