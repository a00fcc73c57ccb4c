"""Steps made past Accelerate, by its settings, and their twins through it."""

import torch
from accelerate import Accelerator
from torch import nn


def fit(loader, epochs=3):
    model = nn.Linear(8, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(epochs):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()  # expect: framework-bypassed
                optimizer.step()
                optimizer.zero_grad()
