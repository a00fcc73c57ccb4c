"""A Wasserstein GAN with a gradient penalty on a ring of eight Gaussians."""

import argparse

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, noise=16, width=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(noise, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)
        )

    def forward(self, noise):
        return self.net(noise)


class Critic(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.first, self.second = nn.Linear(2, width), nn.Linear(width, width)
        self.third, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, points):
        hidden = torch.tanh(self.first(points))
        hidden = torch.tanh(self.second(hidden))
        hidden = torch.tanh(self.third(hidden))
        return self.out(hidden)


def ring(count):
    angle = torch.randint(0, 8, (count,)) * (6.2832 / 8)
    centres = torch.stack([angle.cos(), angle.sin()], dim=1)
    return 2 * centres + 0.05 * torch.randn(count, 2)


def penalty(critic, real, fake):
    weight = torch.rand(len(real), 1)
    between = (weight * real + (1 - weight) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(4)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator, critic = Generator().to(device), Critic().to(device)
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.9))
    c_optimizer = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.9))
    for step in range(args.steps):
        real = ring(128).to(device)
        noise = torch.randn(128, 16, device=device)
        fake = generator(noise)
        c_loss = critic(fake.detach()).mean() - critic(real).mean()
        c_loss = c_loss + 10 * penalty(critic, real, fake.detach())
        c_optimizer.zero_grad()
        c_loss.backward()
        c_optimizer.step()

        g_loss = -critic(generator(noise)).mean()
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: critic {c_loss.item():.3f}, generator {g_loss.item():.3f}")


if __name__ == "__main__":
    main()
