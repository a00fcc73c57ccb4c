"""Everything that has a state is restored."""

import torch
from torch import nn


def load(path, model, optimizer, scheduler):
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    return state["epoch"] + 1


def wound_on(model: nn.Module, loader, epochs, start, checkpoint, use_amp):
    """The scheduler is brought to its place by hand, and the scaler may be off."""
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
    state = torch.load(checkpoint)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    for _ in range(start):
        scheduler.step()
    for epoch in range(start, epochs):
        for x, y in loader:
            optimizer.zero_grad()
            scaler.scale(nn.functional.mse_loss(model(x), y)).backward()
            scaler.step(optimizer)
            scaler.update()
        scheduler.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint)  # expect: save-not-atomic


def main(model: nn.Module, loader, epochs, resume=None):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    start = load(resume, model, optimizer, scheduler) if resume else 0
    for epoch in range(start, epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        scheduler.step()
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": epoch},
            "checkpoint.pt",
        )


def skipped(model: nn.Module, loader, epochs, resume):
    optimizer = torch.optim.Adam(model.parameters())
    start = 0
    if resume:
        state = torch.load(resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    for epoch in range(epochs):
        if epoch < start:
            continue
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, f"{epoch}.pt")
