"""One graph for training, one for evaluation, one more for a size that changes, and a part on each side of a print."""

import torch
from torch import nn

torch.manual_seed(0)


class Said(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        print(end="")
        return nn.functional.dropout(x, 0.1, self.training)


model = Said()
compiled = torch.compile(model, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for size in (8, 8, 8, 5, 7, 6, 9, 3):
    model.train()
    optimizer.zero_grad()
    compiled(torch.ones(size, 4)).pow(2).mean().backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        compiled(torch.ones(8, 4))
