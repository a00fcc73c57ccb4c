"""Formats that a setting names: a dictionary, a configuration, a partial call; and contexts that a helper enters."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

CONFIG = {"lr": 1e-4, "precision": torch.float16, "wide": torch.bfloat16}
FORMATS = {"half": torch.float16, "brain": torch.bfloat16}
CHANGED = {"precision": torch.float16}
in_half = partial(torch.autocast, device_type="cuda", dtype=torch.float16)


@dataclass
class Settings:
    lr: float = 1e-3
    kind: torch.dtype = torch.float16
    other: torch.dtype = torch.float16


def by_entry(denoiser, batches, cfg=CONFIG):
    optimizer = torch.optim.AdamW(denoiser.parameters(), lr=cfg["lr"])
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=cfg["precision"]):
            loss = nn.functional.mse_loss(denoiser(x), y)
        loss.backward()  # expect: scaler-missing
        optimizer.step()


def by_another_entry(denoiser, batches, cfg=CONFIG):
    optimizer = torch.optim.AdamW(denoiser.parameters(), lr=cfg["lr"])
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=cfg["wide"]):
            loss = nn.functional.mse_loss(denoiser(x), y)
        loss.backward()
        optimizer.step()


def by_an_entry_that_is_written(denoiser, batches, precision):
    CHANGED["precision"] = torch.bfloat16 if precision == "brain" else torch.float32
    optimizer = torch.optim.AdamW(denoiser.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=CHANGED["precision"]):
            loss = nn.functional.mse_loss(denoiser(x), y)
        loss.backward()
        optimizer.step()


def by_name(net, batches, precision="half"):
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=FORMATS[precision]):
            loss = nn.functional.mse_loss(net(x), y)
        loss.backward()  # expect: scaler-missing
        optimizer.step()


def by_another_name(net, batches, precision="brain"):
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=FORMATS[precision]):
            loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()


def by_field(net, batches, settings: Settings):
    optimizer = torch.optim.AdamW(net.parameters(), lr=settings.lr)
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", settings.kind):
            loss = nn.functional.mse_loss(net(x), y)
        loss.backward()  # expect: scaler-missing
        optimizer.step()


def by_a_field_that_is_given(net, batches, settings: Settings):
    optimizer = torch.optim.AdamW(net.parameters(), lr=settings.lr)
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", settings.other):
            loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()


def with_options(net, batches):
    options = dict(device_type="cuda", dtype=torch.float16)
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast(**options):
            loss = nn.functional.mse_loss(net(x), y)
        loss.backward()  # expect: scaler-missing
        optimizer.step()


def with_options_of_the_caller(net, batches, **options):
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", **options):
            loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()


def by_partial(net, batches):
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        with in_half():
            loss = nn.functional.mse_loss(net(x), y)
        loss.backward()  # expect: scaler-missing
        optimizer.step()


def by_closure(net, batches):
    optimizer = torch.optim.AdamW(net.parameters())

    @torch.autocast("cuda", dtype=torch.float16)
    def loss_of(x, y):
        return nn.functional.mse_loss(net(x), y)

    for x, y in batches:
        optimizer.zero_grad()
        loss_of(x, y).backward()  # expect: scaler-missing
        optimizer.step()


class ByMethod:
    def __init__(self, model, criterion, optimizer, device, logger):
        self.model, self.criterion, self.optimizer, self.device = model, criterion, optimizer, device
        self.kind = torch.float16
        self.logger = logger

    def forward(self, batch):
        x, y = (tensor.to(self.device) for tensor in batch)
        with torch.autocast(self.device.type, dtype=self.kind):
            return self.criterion(self.model(x), y)

    def run(self, batches):
        self.model.train()
        for batch in batches:
            self.optimizer.zero_grad()
            loss = self.forward(batch)
            loss.backward()  # expect: scaler-missing
            self.optimizer.step()
            self.logger.info("one step")


def main(net, batches):
    by_a_field_that_is_given(net, batches, Settings(other=torch.bfloat16))
