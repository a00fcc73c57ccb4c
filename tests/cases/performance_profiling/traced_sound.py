"""A profiler that a context manager of the file gives, healthy."""

import contextlib

import torch


@contextlib.contextmanager
def traced(path):
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)) as prof:
        yield prof
    prof.export_chrome_trace(path)


def main(model, loader, optimizer):
    with traced("t.json") as prof:
        for x in loader:
            loss = model(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
