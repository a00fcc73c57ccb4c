"""Profilers with a schedule, stepped and not."""

import torch
from torch.profiler import profile, schedule, tensorboard_trace_handler


def never_stepped(loader, step):
    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:  # expect: profiler-without-step
        for batch in loader:
            step(batch)
    print(prof.key_averages().table(sort_by="cuda_time_total"))


def kept_and_never_stepped(loader, step):
    profiler = torch.profiler.profile(  # expect: profiler-without-step
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=3),
        on_trace_ready=tensorboard_trace_handler("log"),
    )
    profiler.start()
    for batch in loader:
        step(batch)
    profiler.stop()


def stepped(loader, step):
    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as run:
        for batch in loader:
            step(batch)
            run.step()


def without_a_schedule(step):
    with profile() as whole:
        step()
    return whole.key_averages()


def handed_on(loader, train):
    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as handed:
        train(loader, handed)


def given_back():
    made = profile(schedule=schedule(wait=1, warmup=1, active=3))
    return made


class Trainer:
    def __init__(self, wanted):
        self.tracer = profile(schedule=schedule(wait=1, warmup=1, active=3)) if wanted else None
        self.other = profile(schedule=schedule(wait=1, warmup=1, active=3))

    def advance(self):
        self.other.step()


def figures(prof):
    for event in prof.key_averages():
        print(event.key, event.cuda_time_total)  # expect: profiler-api-removed
        print(event.key, event.device_time_total)
        print(getattr(event, "self_cuda_time_total", 0))
