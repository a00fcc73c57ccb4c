"""A denoising autoencoder of short signals whose code is rounded to a few levels."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function


class RoundCode(Function):
    """Rounds the code; backwards the gradient passes where the code is inside of its range."""

    @staticmethod
    def forward(ctx, code, levels):
        ctx.save_for_backward(code)
        return torch.round(code.clamp(-1, 1) * levels) / levels

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (code,) = ctx.saved_tensors
        return grad_output * (code.abs() <= 1), None


class Autoencoder(nn.Module):
    def __init__(self, length=96, width=192, code=16, levels=8):
        super().__init__()
        self.levels = levels
        self.encoder = nn.Sequential(
            nn.Linear(length, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, code)
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, length)
        )

    def forward(self, signals):
        code = RoundCode.apply(self.encoder(signals), self.levels)
        return self.decoder(code)


def signals(count, length, generator):
    """Sums of two sines: count x length."""
    time = torch.linspace(0, 1, length)
    rate = torch.rand(count, 2, 1, generator=generator) * 4 + 1
    phase = torch.rand(count, 2, 1, generator=generator) * 6.28
    return torch.sin(6.28 * rate * time + phase).sum(dim=1)


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(8)
    clean = signals(4096, 96, generator)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        order = torch.randperm(len(clean))
        total = 0.0
        for begin in range(0, len(order), 64):
            rows = clean[order[begin : begin + 64]]
            noisy = rows + 0.1 * torch.randn(rows.shape)
            optimizer.zero_grad()
            restored = model(noisy)
            loss = F.mse_loss(restored, rows)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {64 * total / len(order):.4f}")
    with torch.no_grad():
        probe = signals(256, 96, generator)
        print(f"test: {F.mse_loss(model(probe), probe).item():.4f}")


if __name__ == "__main__":
    main()
