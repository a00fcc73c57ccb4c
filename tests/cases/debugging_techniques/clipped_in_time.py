"""Gradients are clipped before the step; a stray copy of the line, in the evaluation, comes too late for nothing."""

import torch
from torch import nn


def run(model, batches, held_out):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(10):
        model.train()
        for x, y in batches:
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        model.eval()
        with torch.no_grad():
            for x, y in held_out:
                loss = nn.functional.mse_loss(model(x), y)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        print(epoch, loss.item())


if __name__ == "__main__":
    data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(5)]
    run(nn.Linear(3, 1), data, data)
