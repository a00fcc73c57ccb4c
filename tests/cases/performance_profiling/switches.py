"""Debugging aids that stay on, and cuDNN's two switches."""

import os

import torch
import torch.backends.cudnn as cudnn
from torch import nn

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # expect: debug-left-on
os.environ["OMP_NUM_THREADS"] = "1"


def repeatable(seed):
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True  # expect: benchmark-with-deterministic


def repeatable_by_alias(seed):
    cudnn.benchmark = True  # expect: benchmark-with-deterministic
    cudnn.deterministic = True
    torch.manual_seed(seed)


def either(seed):
    if seed is None:
        cudnn.benchmark = True
    else:
        cudnn.deterministic = True
        torch.manual_seed(seed)


def taken_back():
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def fit(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    torch.autograd.set_detect_anomaly(True)  # expect: debug-left-on
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def fit_inside(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    with torch.autograd.detect_anomaly():  # expect: debug-left-on
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()


def fit_when_asked(model: nn.Module, loader, optimizer: torch.optim.Optimizer, args):
    torch.autograd.set_detect_anomaly(args.debug)
    if args.debug:
        torch.autograd.set_detect_anomaly(True)
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def probe_once(model: nn.Module, inputs):
    with torch.autograd.detect_anomaly():
        model(inputs).sum().backward()


def of_something_made(backends):
    backends()[0].benchmark = True
    backends().cudnn.deterministic = True
