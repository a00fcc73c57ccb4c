"""Healthy sums of losses: two of a GAN, tasks with heads of their own, samples of one batch, a sequence in pieces, tokens."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
body, heads = nn.Linear(8, 16), nn.ModuleList([nn.Linear(16, 3) for _ in range(3)])
judge = nn.BCEWithLogitsLoss()


def learn(loss: torch.Tensor) -> None:
    loss.backward()


discriminator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(discriminator.parameters(), 1e-3)
for _ in range(12):  # real and fake
    optimizer.zero_grad()
    learn(judge(discriminator(torch.randn(16, 8)), torch.ones(16, 1)))
    learn(judge(discriminator(torch.randn(16, 8)), torch.zeros(16, 1)))
    optimizer.step()


class Multi(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.heads = body, heads

    def forward(self, x: torch.Tensor, task: int) -> torch.Tensor:
        return self.heads[task](self.body(x))


multi = Multi()
optimizer = torch.optim.SGD(multi.parameters(), 1e-3)
for _ in range(12):  # tasks
    optimizer.zero_grad()
    for task in range(3):
        x = torch.randn(16, 8)
        nn.functional.cross_entropy(multi(x, task), x[:, :3].argmax(-1)).backward()
    optimizer.step()

noisy = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))
optimizer = torch.optim.SGD(noisy.parameters(), 1e-3)
x = torch.randn(96, 8)
for (batch,) in DataLoader(TensorDataset(x), batch_size=8):  # four draws of noise for one batch
    optimizer.zero_grad()
    for _ in range(4):
        nn.functional.mse_loss(noisy(batch + 0.1 * torch.randn(8, 8)), batch).backward()
    optimizer.step()

cell = nn.GRU(8, 16, batch_first=True)
optimizer = torch.optim.SGD(cell.parameters(), 1e-3)
for _ in range(12):  # truncated backpropagation, one step for the sequence
    state = torch.zeros(1, 4, 16)
    optimizer.zero_grad()
    for piece in torch.randn(4, 20, 8).split(5, dim=1):
        out, state = cell(piece, state.detach())
        nn.functional.mse_loss(out[..., :8], piece).backward()
    optimizer.step()

model = nn.Linear(8, 3)
for rate, divide, edit in ((0.1 / 4, False, False), (1e-3, True, False), (1e-3, False, True)):
    optimizer = torch.optim.SGD(model.parameters(), rate)  # the rate, the count of all tokens, or the gradients
    for number in range(48):
        x = torch.randn(16, 8)
        optimizer.zero_grad() if number % 4 == 0 else None
        each = nn.functional.cross_entropy(model(x), x[:, :3].argmax(-1), reduction="sum" if divide else "mean")
        (each / 64 if divide else each).backward()
        if number % 4 == 3:
            for parameter in model.parameters() if edit else ():
                parameter.grad /= 4
            optimizer.step()
