"""A scaler beside bfloat16 that a setting or a helper names, and scalers that are switched by the format."""

import torch
from torch import nn

CONFIG = {"kind": torch.bfloat16, "lr": 1e-3}


class ByMethod:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
        self.scaler = torch.amp.GradScaler("cuda")  # expect: scaler-with-bf16
        self.kind = torch.bfloat16

    def loss(self, x, y):
        with torch.autocast("cuda", dtype=self.kind):
            return nn.functional.mse_loss(self.model(x), y)

    def fit(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            self.scaler.scale(self.loss(x, y)).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()


def by_entry(model, batches):
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    scaler = torch.amp.GradScaler("cuda")  # expect: scaler-with-bf16
    context = torch.autocast("cuda", dtype=CONFIG["kind"])
    for x, y in batches:
        with context:
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def switched_together(model, batches, args):
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)  # expect: scaler-with-bf16
    for x, y in batches:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.amp):
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def switched_by_format(model, batches, args):
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=args.dtype == "half")
    for x, y in batches:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
