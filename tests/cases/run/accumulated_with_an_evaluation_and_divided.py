"""The model is evaluated between the micro-batches of the first step, whose mean losses are divided."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    every = 4

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        self.batches = 0

    @torch.no_grad()
    def evaluate(self, loader: DataLoader) -> float:
        self.model.eval()
        losses = [nn.functional.cross_entropy(self.model(inputs), targets).item() for inputs, targets in loader]
        self.model.train()
        return sum(losses) / len(losses)

    def learn(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        logits = self.model(inputs)
        loss = nn.functional.cross_entropy(logits, targets) + 1e-4 * logits.pow(2).mean()
        (loss / self.every).backward()
        self.batches += 1
        if self.batches % self.every == 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
            self.optimizer.step()
            self.optimizer.zero_grad()


torch.manual_seed(0)
x = torch.randn(640, 8)
trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
data = TensorDataset(x, x[:, :3].argmax(-1))
held_out = DataLoader(data, batch_size=64)
for number, (inputs, targets) in enumerate(DataLoader(data, batch_size=8)):
    trainer.learn(inputs, targets)
    if number % 32 == 1:
        trainer.evaluate(held_out)
