"""Errors of a training step that nobody gets to see."""

import logging
import traceback

import torch
import torch.nn.functional as F
from torch import nn, optim

log = logging.getLogger(__name__)


def silent(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        try:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        except:  # expect: failure-swallowed
            continue


def without_the_reason(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        try:
            F.cross_entropy(model(x), y).backward()
        except Exception:  # expect: failure-swallowed
            print("skipping batch")
            continue
        optimizer.step()


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = model
        self.optimizer = optim.AdamW(model.parameters())

    def step(self, x, y):
        try:
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
        except (RuntimeError, ValueError) as error:  # expect: failure-swallowed
            torch.cuda.empty_cache()

    def fit(self, loader):
        for x, y in loader:
            self.step(x, y)


def out_of_memory(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        try:
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:  # expect: failure-swallowed
            torch.cuda.empty_cache()


# look-alikes


def said(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    dropped = 0
    for x, y in loader:
        optimizer.zero_grad()
        try:
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:
            log.warning("out of memory, batch skipped")
            torch.cuda.empty_cache()
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            torch.cuda.empty_cache()
        except Exception:
            dropped += 1
            if dropped > 3:
                raise
    return dropped


def with_the_traceback(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        try:
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        except Exception:
            traceback.print_exc()
        try:
            F.cross_entropy(model(x), y).backward()
        except Exception:
            log.error("step failed", exc_info=True)


def one_known_error(model: nn.Module, loader, queue):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        try:
            z = queue.get_nowait()
        except Exception:
            z = None
        optimizer.zero_grad()
        try:
            F.cross_entropy(model(x if z is None else z), y).backward()
            optimizer.step()
        except StopIteration:
            pass
        except KeyboardInterrupt:
            break


def around_everything(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    try:
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    except Exception:
        torch.save(model.state_dict(), "last.pt")


def measured(model: nn.Module, x):
    for _ in range(10):
        try:
            model(x).sum().backward()
        except Exception:
            pass
