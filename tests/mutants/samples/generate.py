import torch
import torch.nn.functional as F
from torch import nn


class Average:
    def __init__(self, network):
        self.shadow = network

    def update(self, network):
        for old, new in zip(self.shadow.parameters(), network.parameters(), strict=True):
            old.lerp_(new, 0.01)


class Maker(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 2)

    def forward(self, z):
        return self.layer(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x).squeeze(1)


def train(loader):
    maker, critic = Maker(8), Critic()
    generator = Maker(8)
    judge = Critic()
    generator_opt = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judge_opt = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    ema = Average(generator)
    for real, target in loader:
        fake = generator(torch.randn(len(real), 8))
        judge_opt.zero_grad()
        loss = criterion(judge(fake.detach()), torch.zeros(len(real)))
        loss.backward()
        judge_opt.step()
        generator_opt.zero_grad()
        recon = F.mse_loss(fake, real)
        kl = F.softplus(target).mean()
        loss = recon + kl
        loss.backward()
        generator_opt.step()
        ema.update(generator)
    return maker, critic
