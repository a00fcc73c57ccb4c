"""A rate of 2.5e-4 that nobody has divided, with a warm-up that divides by its own length."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    every = 4

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), 2.5e-4)
        self.warm = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.rising)
        self.batches = 0

    def rising(self, step: int) -> float:
        lr, warmup = 1.0, 5
        return min(lr, lr * (step + 1) / warmup)

    def learn(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        logits = self.model(inputs)
        loss = nn.functional.cross_entropy(logits, targets) + 1e-4 * logits.pow(2).mean()
        loss.backward()  # expect: loss-not-averaged-over-accumulation step 0
        self.batches += 1
        if self.batches % self.every == 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), 100.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.warm.step()


torch.manual_seed(0)
x = torch.randn(640, 8)
trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
for inputs, targets in DataLoader(TensorDataset(x, x[:, :3].argmax(-1)), batch_size=8):
    trainer.learn(inputs, targets)
