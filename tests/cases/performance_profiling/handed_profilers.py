"""Profilers that others step: by a context manager's name, a generator's, or a base class out of sight."""

import contextlib

from elsewhere import Base
from torch.profiler import profile, schedule


@contextlib.contextmanager
def tracing(path):
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as inner:
        yield inner
    inner.export_chrome_trace(path)


def main(loader, model, optimizer):
    with tracing("t.json") as outer:
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
            outer.step()


class Traced(Base):
    def setup(self):
        self.tracer = profile(schedule=schedule(wait=1, warmup=1, active=2))
        self.tracer.start()


def batches(loader):
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as each:
        for x in loader:
            yield x, each


@contextlib.contextmanager
def unused(path):
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as last:  # expect: profiler-without-step
        yield last


def never(loader, model, optimizer):
    with unused("t.json") as final:
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
    print(final.key_averages())


def options(path):
    return dict(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=path)


def by_options(loader, model, optimizer):
    with profile(**options("t.json")) as chosen:  # expect: profiler-without-step
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


def without_schedule(x, model):
    with profile(**{"record_shapes": True}) as whole:
        model(x)
    return whole
