"""The step stands in a method that a class below gives, or behind the yield of a context manager: look-alikes."""

import abc
import contextlib

import torch
from torch import nn


class Fitter(abc.ABC):
    def __init__(self, network: nn.Module, lr: float) -> None:
        self.network = network
        self.optimizer = torch.optim.AdamW(network.parameters(), lr=lr)

    @abc.abstractmethod
    def loss(self, batch) -> torch.Tensor: ...

    @abc.abstractmethod
    def apply(self) -> None: ...

    def fit(self, batches, epochs: int) -> None:
        for _ in range(epochs):
            for batch in batches:
                self.optimizer.zero_grad(set_to_none=True)
                self.loss(batch).backward()
                self.apply()


class Clipped(Fitter):
    def apply(self) -> None:
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()


class Open(abc.ABC):
    """The classes below are in other files."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    @abc.abstractmethod
    def apply(self) -> None:
        """Clip, and step."""

    def fit(self, batches) -> None:
        for x, y in batches:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.network(x), y).backward()
            self.apply()


@contextlib.contextmanager
def updating(optimizer, params, bound):
    optimizer.zero_grad(set_to_none=True)
    yield
    nn.utils.clip_grad_norm_(params, bound)
    optimizer.step()


def tune(policy, loader):
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=5e-7)
    for batch in loader:
        loss = -nn.functional.logsigmoid(policy(batch)).mean()
        with updating(optimizer, list(policy.parameters()), 10.0):
            loss.backward()


class Updating:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def __enter__(self):
        self.optimizer.zero_grad()

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.optimizer.step()


def refine(network, loader):
    around = Updating(torch.optim.Adam(network.parameters()))
    for x, y in loader:
        with around:
            nn.functional.l1_loss(network(x), y).backward()


def stepped(loader, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        yield batch
        optimizer.step()


def follow(network, loader):
    optimizer = torch.optim.Adam(network.parameters())
    for x, y in stepped(loader, optimizer):
        nn.functional.l1_loss(network(x), y).backward()


def forget(network, loader):
    optimizer = torch.optim.Adam(network.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.l1_loss(network(x), y).backward()  # expect: step-missing
        print(optimizer.param_groups[0]["lr"])


def held_in_a_dict(loader):
    body = nn.Sequential(nn.Linear(8, 64), nn.Tanh())
    policy, value = nn.Linear(64, 2), nn.Linear(64, 1)
    agent = nn.ModuleDict({"body": body, "heads": nn.ModuleList([policy, value])})
    optimizer = torch.optim.RMSprop(agent.parameters(), lr=7e-4)
    for x, y in loader:
        h = body(x)
        loss = nn.functional.cross_entropy(policy(h), y) + value(h).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
