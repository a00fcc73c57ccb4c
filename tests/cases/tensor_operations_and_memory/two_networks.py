"""Two networks with a backward each: graphs that they share, and graphs that they do not."""

import torch
from torch import nn


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.LeakyReLU(0.2), nn.Linear(64, o))


def gan(loader, device="cpu"):
    G, D = mlp(8, 2).to(device), mlp(2, 1).to(device)
    od = torch.optim.Adam(D.parameters())
    og = torch.optim.Adam(G.parameters())
    bce = nn.BCEWithLogitsLoss()
    for real, _ in loader:
        real = real.to(device)
        n = real.size(0)
        valid, none = torch.ones(n, 1, device=device), torch.zeros(n, 1, device=device)
        fake = G(torch.randn(n, 8, device=device))
        d_loss = bce(D(real), valid) + bce(D(fake.detach()), none)
        od.zero_grad()
        d_loss.backward(retain_graph=True)  # expect: retain-graph-needless
        od.step()
        g_loss = bce(D(fake), valid)
        og.zero_grad()
        g_loss.backward()
        og.step()


def gan_shared(loader, device="cpu"):
    G, D = mlp(8, 2).to(device), mlp(2, 1).to(device)
    od = torch.optim.Adam(D.parameters())
    og = torch.optim.Adam(G.parameters())
    bce = nn.BCEWithLogitsLoss()
    for real, _ in loader:
        n = real.size(0)
        fake = G(torch.randn(n, 8, device=device))
        d_loss = bce(D(real), torch.ones(n, 1)) + bce(D(fake), torch.zeros(n, 1))
        od.zero_grad()
        d_loss.backward(retain_graph=True)
        od.step()
        g_loss = bce(D(fake), torch.ones(n, 1))
        og.zero_grad()
        g_loss.backward()
        og.step()


def actor_critic(loader):
    body, pi, v = mlp(4, 4), mlp(4, 2), mlp(4, 1)
    oa = torch.optim.Adam(pi.parameters())
    oc = torch.optim.Adam([*v.parameters(), *body.parameters()])
    for obs, ret in loader:
        h = body(obs)
        value = v(h)
        actor = -(pi(h).log_softmax(-1)[:, 0] * (ret - value.detach())).mean()
        critic = (ret - value).pow(2).mean()
        oa.zero_grad()
        actor.backward(retain_graph=True)
        oa.step()
        oc.zero_grad()
        critic.backward()
        oc.step()


def two_heads_apart(loader):
    one, two = mlp(4, 4), mlp(4, 2)
    a, b = torch.optim.Adam(one.parameters()), torch.optim.Adam(two.parameters())
    for x, y in loader:
        first = nn.functional.mse_loss(one(x), y)
        second = nn.functional.mse_loss(two(x), y)
        a.zero_grad()
        first.backward(retain_graph=True)  # expect: retain-graph-needless
        a.step()
        b.zero_grad()
        second.backward()
        b.step()
