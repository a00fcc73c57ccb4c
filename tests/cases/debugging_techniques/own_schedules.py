"""Schedules of a class of one's own, that step first; a run that is resumed has stepped before."""

import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import MultiStepLR, _LRScheduler


class Constant(_LRScheduler):
    def __init__(self, optimizer, last_epoch=-1):
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return list(self.base_lrs)


def schedule_of(optimizer, options):
    if options is None:
        return Constant(optimizer)
    return MultiStepLR(optimizer, **options)


def main(args, loader):
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = schedule_of(optimizer, args.options)
    if args.resume is not None:
        state = torch.load(args.resume, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
    for _ in range(10):
        for x, y in loader:
            schedule.step()  # expect: scheduler-before-optimizer
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume")
    parser.add_argument("--options")
    main(parser.parse_args(), [(torch.randn(4, 8), torch.randint(2, (4,))) for _ in range(5)])
