"""A model that is passed to a function that saves it: as it should be."""

import torch


def save_model(model, optimizer, epoch, path):
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def train(model, loader, optimizer, criterion, epochs):
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        save_model(model, optimizer, epoch, f"m{epoch}.pt")
