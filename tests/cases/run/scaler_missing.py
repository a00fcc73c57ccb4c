"""float16 autocast is opened within the model's forward, and nothing scales the loss."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.Tanh())
        self.head = nn.Linear(32, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            return self.head(self.body(x))


def fit(model: nn.Module, loader: DataLoader) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
        loss.backward()  # expect: scaler-missing step 0
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


torch.manual_seed(0)
x = torch.randn(480, 8)
fit(Net(), DataLoader(TensorDataset(x, x[:, :3].argmax(-1)), batch_size=16))
