"""Debugging aids around a whole training: in main(), by os.environ, and profilers without a schedule."""

import os

import torch
from torch import nn

os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")  # expect: debug-left-on
os.environ.update({"OMP_NUM_THREADS": "1", "CUDA_LAUNCH_BLOCKING": "1"})  # expect: debug-left-on
os.environ |= {"CUDA_LAUNCH_BLOCKING": "1"}  # expect: debug-left-on
os.environ.update(CUDA_LAUNCH_BLOCKING="0")
os.environ.setdefault("CUDA_LAUNCH_BLOCKING", os.environ.get("BLOCKING", "0"))


def one_epoch(model: nn.Module, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def train(model: nn.Module, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    with torch.autograd.profiler.profile(use_cuda=True):  # expect: debug-left-on
        for _ in range(epochs):
            one_epoch(model, loader, optimizer)


def train_by_name(model: nn.Module, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    watch = torch.profiler.profile(record_shapes=True)  # expect: debug-left-on
    with watch:
        for _ in range(epochs):
            one_epoch(model, loader, optimizer)


def train_on_schedule(model: nn.Module, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    plan = torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1)
    with torch.profiler.profile(schedule=plan) as prof:
        for _ in range(epochs):
            one_epoch(model, loader, optimizer)
            prof.step()


def profile_a_training(model: nn.Module, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    with torch.profiler.profile() as prof:
        for _ in range(epochs):
            one_epoch(model, loader, optimizer)
    print(prof.key_averages().table())


def a_few_steps(model: nn.Module, loader):
    optimizer = torch.optim.Adam(model.parameters())
    with torch.profiler.profile() as prof:
        for step, (inputs, targets) in enumerate(loader):
            if step == 5:
                break
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
    print(prof.key_averages().table())


def main(model: nn.Module, loader):
    torch.autograd.set_detect_anomaly(mode=True)  # expect: debug-left-on
    train(model, loader, 30)


def main_when_asked(model: nn.Module, loader, args):
    with torch.autograd.set_detect_anomaly(args.debug), torch.autograd.profiler.profile(enabled=args.profile):
        train(model, loader, args.epochs)


def train_between(model: nn.Module, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    watch = torch.profiler.profile()  # expect: debug-left-on
    watch.start()
    for _ in range(epochs):
        one_epoch(model, loader, optimizer)
    watch.stop()


def first_epoch_only(model: nn.Module, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    watch = torch.profiler.profile()
    watch.start()
    one_epoch(model, loader, optimizer)
    watch.stop()
    for _ in range(1, epochs):
        one_epoch(model, loader, optimizer)
