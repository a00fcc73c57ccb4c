"""Autocast that is entered by a context manager of the file, an ExitStack, a lambda, or with a format by name."""

import contextlib

import torch
import torch.nn.functional as F
from torch import nn

SETTINGS = {"lr": 1e-4, "dtype": "float16"}


@contextlib.contextmanager
def mixed(enabled=True):
    with torch.autocast("cuda", dtype=torch.float16, enabled=enabled):
        yield


def inside_own_manager(model, loader, optimizer, scaler):
    for batch in loader:
        optimizer.zero_grad()
        with mixed():
            loss = model(batch)
            scaler.scale(loss).backward()  # expect: backward-in-autocast
        scaler.step(optimizer)
        scaler.update()


def inside_stack(model, loader, optimizer):
    for batch in loader:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.autocast("cuda", dtype=torch.bfloat16))
            loss = model(batch)
            loss.backward()  # expect: backward-in-autocast
        optimizer.step()
        optimizer.zero_grad()


def behind_own_manager(model, loader, optimizer, scaler):
    for batch in loader:
        optimizer.zero_grad()
        with mixed(), contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.nullcontext())
            loss = model(batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def by_lambda(model, loader, lr):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    scaler = torch.amp.GradScaler("cuda")  # expect: scaler-with-bf16
    context = lambda: torch.autocast("cuda", dtype=torch.bfloat16)  # noqa: E731 - the form that is tested
    for x, y in loader:
        with context():
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def by_name():
    return torch.autocast(device_type="cuda", dtype=getattr(torch, SETTINGS["dtype"]))


def formatted_by_name(model, stream):
    optimizer = torch.optim.AdamW(model.parameters(), lr=SETTINGS["lr"])
    for x, y in stream:
        with by_name():
            loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: scaler-missing
        optimizer.step()
        optimizer.zero_grad()


def format_of_the_caller(model, stream, optimizer, name):
    for x, y in stream:
        with torch.autocast("cuda", dtype=getattr(torch, name)):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


class Experiment:
    def __init__(self, model, lr, half=True):
        self.model = model.cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.context = torch.autocast("cuda", dtype=torch.float16) if half else contextlib.nullcontext()

    def compute(self, batch):
        with self.context:
            return self.model(**batch).loss

    def train(self, loader):
        for batch in loader:
            loss = self.compute(batch)
            loss.backward()  # expect: scaler-missing
            self.optimizer.step()
            self.optimizer.zero_grad()


class Tasks:
    def __init__(self, model):
        self.model = model
        self.losses = {"label": nn.CrossEntropyLoss(), "mask": nn.BCELoss(), "edge": nn.BCEWithLogitsLoss()}

    def loss(self, batch):
        with torch.autocast("cuda"):
            label, mask, edge = self.model(batch["image"])
            loss = self.losses["label"](label, batch["label"]) + self.losses["edge"](edge, batch["edge"])
            return loss + self.losses["mask"](mask, batch["mask"])  # expect: bce-under-autocast
