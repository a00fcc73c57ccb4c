"""Two optimizers, of which a resume restores one."""

import os

import torch
import torch.nn as nn


def resume(path, gen, critic, opt_g, opt_d):
    ckpt = torch.load(path, map_location="cpu", weights_only=True)  # expect: checkpoint-incomplete
    gen.load_state_dict(ckpt["gen"])
    critic.load_state_dict(ckpt["critic"])
    opt_g.load_state_dict(ckpt["opt_g"])
    return ckpt["epoch"] + 1


def train(loader, epochs=50, path="gan_latest.pt"):
    gen = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
    critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    opt_g = torch.optim.Adam(gen.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    begin = resume(path, gen, critic, opt_g, opt_d) if os.path.exists(path) else 0
    for epoch in range(begin, epochs):
        for (real,) in loader:
            ones = torch.ones(len(real), 1)
            fake = gen(torch.randn(len(real), 16))
            opt_d.zero_grad()
            d_loss = bce(critic(real), ones) + bce(critic(fake.detach()), torch.zeros(len(real), 1))
            d_loss.backward()
            opt_d.step()
            opt_g.zero_grad()
            g_loss = bce(critic(fake), ones)
            g_loss.backward()
            opt_g.step()
        state = {"gen": gen.state_dict(), "critic": critic.state_dict(), "epoch": epoch}
        state |= {"opt_g": opt_g.state_dict(), "opt_d": opt_d.state_dict()}
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)
