"""Two networks and two optimizers: one that is never cleared, never stepped, or stepped while a loss still waits."""

import torch
from torch import nn
from torch.nn import functional as F


class Adversarial:
    def __init__(self, cfg):
        self.gen = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32)).to(cfg.device)
        self.disc = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to(cfg.device)
        self.gen_opt = torch.optim.Adam(self.gen.parameters(), lr=cfg.lr)
        self.disc_opt = torch.optim.Adam(self.disc.parameters(), lr=cfg.lr)

    def judge(self, real):
        fake = self.gen(torch.randn(len(real), 16)).detach()
        loss = F.softplus(-self.disc(real)).mean() + F.softplus(self.disc(fake)).mean()
        loss.backward()  # expect: gradients-not-zeroed
        self.disc_opt.step()

    def forge(self, count):
        self.gen_opt.zero_grad()
        F.softplus(-self.disc(self.gen(torch.randn(count, 16)))).mean().backward()
        self.gen_opt.step()

    def fit(self, loader):
        for (real,) in loader:
            self.judge(real)
            self.forge(len(real))


def by_name(batches):
    nets = {"speech": nn.Linear(80, 30), "text": nn.Linear(30, 30)}
    opts = {name: torch.optim.Adam(net.parameters()) for name, net in nets.items()}
    for sound, text in batches:
        loss = nets["speech"](sound).mean() + nets["text"](text).mean()
        opts["speech"].zero_grad()
        opts["text"].zero_grad()
        loss.backward()
        opts["speech"].step()
        opts["text"].step()


def cleared_by_the_model(batches):
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    first, second = torch.optim.Adam(one.parameters()), torch.optim.Adam(two.parameters())
    for x in batches:
        one.zero_grad()
        two.zero_grad()
        (one(x).mean() + two(x).mean()).backward()
        first.step()
        second.step()


def one_arm_only(model, batches, optimizer, scaler, amp):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        if amp:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()  # expect: step-missing


def both_arms(model, batches, optimizer, scaler, amp):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        if amp:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()


def waiting(buffer, turns):
    actor = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2), nn.Tanh())
    critic = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))
    actor_opt, critic_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(turns):
        state, action, value = buffer.sample(128)
        error = (critic(torch.cat([state, action], -1)) - value).pow(2).mean()
        gain = -critic(torch.cat([state, actor(state)], -1)).mean()
        critic_opt.zero_grad()
        error.backward()
        critic_opt.step()
        actor_opt.zero_grad()
        gain.backward()  # expect: inplace-breaks-autograd
        actor_opt.step()


def not_waiting(buffer, turns):
    actor = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2), nn.Tanh())
    critic = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))
    actor_opt, critic_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(turns):
        state, action, value = buffer.sample(128)
        guess = critic(torch.cat([state, action], -1))
        error = (guess - value).pow(2).mean()
        gain = -(actor(state) * (value - guess.detach())).mean()
        critic_opt.zero_grad()
        error.backward()
        critic_opt.step()
        actor_opt.zero_grad()
        gain.backward()
        actor_opt.step()
