"""Gradients with a graph of their own are taken before the one backward."""

import math

import torch
from torch import nn


def sine_mlp(width, depth):
    class Sine(nn.Module):
        def forward(self, x):
            return torch.sin(x)

    mods = [nn.Linear(2, width), Sine()]
    for _ in range(depth - 1):
        mods += [nn.Linear(width, width), Sine()]
    return nn.Sequential(*mods, nn.Linear(width, 1))


def residual(u_net, xt, alpha):
    xt = xt.requires_grad_(True)
    u = u_net(xt)
    (du,) = torch.autograd.grad(u.sum(), xt, create_graph=True)
    u_x, u_t = du[:, 0], du[:, 1]
    u_xx = torch.autograd.grad(u_x.sum(), xt, create_graph=True)[0][:, 0]
    return u_t - alpha * u_xx


def sample(n, device):
    inside = torch.rand(n, 2, device=device)
    start = torch.stack([torch.rand(n // 4, device=device), torch.zeros(n // 4, device=device)], dim=1)
    edge = torch.rand(n // 4, 2, device=device)
    edge[:, 0] = (edge[:, 0] > 0.5).float()
    return inside, start, edge


def solve(alpha=0.05, iters=3000, device="cpu"):
    u_net = sine_mlp(48, 4).to(device)
    opt = torch.optim.Adam(u_net.parameters(), lr=1e-3)
    decay = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9995)

    def one_iteration():
        inside, start, edge = sample(1024, device)
        pde = residual(u_net, inside, alpha).pow(2).mean()
        ic = (u_net(start).squeeze(1) - torch.sin(math.pi * start[:, 0])).pow(2).mean()
        bc = u_net(edge).pow(2).mean()
        objective = pde + 10 * ic + 10 * bc
        opt.zero_grad()
        objective.backward(retain_graph=True)  # expect: retain-graph-needless
        opt.step()
        decay.step()
        return objective.detach()

    for k in range(iters):
        value = one_iteration()
        if k % 250 == 0:
            print(f"{k:5d} {value.item():.3e}")
    return u_net


if __name__ == "__main__":
    torch.manual_seed(0)
    solve()
