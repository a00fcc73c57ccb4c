"""Settings that are put back to what they were; a profiler that another function steps; an aid by an option."""

import sys
from contextlib import contextmanager

import torch
from mylib.trainer import Trainer
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule


@contextmanager
def repeatable():
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    was_benchmark = torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic = before[0]
        torch.backends.cudnn.benchmark = was_benchmark


def fit(loader):
    with repeatable():
        model = nn.Conv2d(3, 4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


def profiled(run):
    before = Trainer.one
    box = {"prof": None}

    def one_and_step(self, *args):
        before(self, *args)
        if box["prof"] is not None:
            box["prof"].step()

    Trainer.one = one_and_step
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=2, warmup=1, active=3)) as p:
        box["prof"] = p
        run()


def main(args):
    if args[1] == "fit":
        kind = nn.Linear
    else:
        print("unknown model")
        exit(1)
    if "--find-nans" in args:
        torch.autograd.set_detect_anomaly(True)
    model = kind(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main(sys.argv)
