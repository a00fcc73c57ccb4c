"""Load of a grid from weather and calendar: a regression with warm-up and cosine decay of the rate."""

import math

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import LambdaLR

STEPS, WARMUP, BATCH = 320, 20, 128


def hours(count, seed):
    """Inputs count x 12 and the load, standardised."""
    generator = torch.Generator().manual_seed(seed)
    weather = torch.randn(count, 8, generator=generator)
    hour = torch.rand(count, 1, generator=generator) * 6.2832
    day = torch.rand(count, 1, generator=generator) * 6.2832
    inputs = torch.cat([weather, hour.sin(), hour.cos(), day.sin(), day.cos()], dim=1)
    load = weather[:, 0] * hour[:, 0].sin() + weather[:, 1].abs() + 0.5 * weather[:, 2] * day[:, 0].cos()
    return inputs, ((load - load.mean()) / load.std()).unsqueeze(1)


class LoadModel(nn.Module):
    def __init__(self, inputs=12, width=256):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.net = nn.Sequential(
            nn.Linear(inputs, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, inputs):
        return self.scale * self.net(inputs)


def rate(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def main():
    torch.manual_seed(9)
    inputs, load = hours(8192, 0)
    model = LoadModel()
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = LambdaLR(optimizer, rate)
    losses = []
    for step in range(STEPS):
        rows = torch.randint(0, len(inputs), (BATCH,))
        optimizer.zero_grad()
        loss = criterion(model(inputs[rows]), load[rows])
        loss.backward()
        clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if step % 40 == 39:
            print(f"step {step + 1}: {sum(losses[-40:]) / 40:.4f} at {scheduler.get_last_lr()[0]:.5f}")
    with torch.no_grad():
        held_inputs, held_load = hours(1024, 1)
        print(f"held out: {criterion(model(held_inputs), held_load).item():.4f}")


if __name__ == "__main__":
    main()
