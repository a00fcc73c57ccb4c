"""A trainer that was moved from float16 to bfloat16 and kept its scaler."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        self.scaler = torch.amp.GradScaler("cpu")  # expect: scaler-with-bf16 step 0

    def step(self, x: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = self.model(x)
            loss = nn.functional.mse_loss(out.float(), x)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()


torch.manual_seed(0)
trainer = Trainer(nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 8)))
for _ in range(30):
    trainer.step(torch.randn(16, 8))
