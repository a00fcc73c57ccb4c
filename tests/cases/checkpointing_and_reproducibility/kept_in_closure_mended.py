"""A closure that a training loop calls keeps the best state: as it should be."""

import torch
from torch import nn


def train(model, loader, val_loader, epochs, device="cpu"):
    optimizer = torch.optim.AdamW(model.parameters())
    loss_fn = nn.L1Loss()
    best_rmse = 1e9
    best_weights = None

    def validate():
        nonlocal best_rmse, best_weights
        model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in val_loader:
                total += loss_fn(model(x.to(device)), y.to(device)).item()
        if total < best_rmse:
            best_rmse = total
            best_weights = {k: v.cpu().clone() for k, v in model.state_dict().items()}
        model.train()

    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
        validate()
    model.load_state_dict(best_weights)
    return best_rmse
