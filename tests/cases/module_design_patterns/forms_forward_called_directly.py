"""Forms of forward-called-directly and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


from torch.nn.parallel import DistributedDataParallel as DDP
def main2(rank, loader):
    model = DDP(nn.Linear(4, 2).to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        out = model.forward(x.to(rank))  # expect: forward-called-directly
        opt.zero_grad()
        F.cross_entropy(out, y.to(rank)).backward()
        opt.step()


from torch.nn.parallel import DistributedDataParallel as DDP
def main_right2(rank, loader):
    model = DDP(nn.Linear(4, 2).to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        out = model(x.to(rank))
        opt.zero_grad()
        F.cross_entropy(out, y.to(rank)).backward()
        opt.step()


class Cam3:
    def __init__(self, model, layer):
        self.model = model
        self.grads = None
        layer.register_full_backward_hook(self.save)
        model.register_forward_hook(self.keep)
    def save(self, m, gi, go):
        self.grads = go[0]
    def keep(self, m, i, o):
        self.out = o
    def __call__(self, x):
        score = self.model.forward(x).max()  # expect: forward-called-directly
        score.backward()
        return self.out * self.grads


class CamRight3:
    def __init__(self, model, layer):
        self.model = model
        self.grads = None
        layer.register_full_backward_hook(self.save)
        model.register_forward_hook(self.keep)
    def save(self, m, gi, go):
        self.grads = go[0]
    def keep(self, m, i, o):
        self.out = o
    def __call__(self, x):
        score = self.model(x).max()
        score.backward()
        return self.out * self.grads


class Sub4(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.utils.spectral_norm(nn.Linear(4, 4))
        self.dec = nn.Linear(4, 4)
    def forward(self, x):
        return self.dec(self.enc.forward(x))  # expect: forward-called-directly


class SubRight4(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.utils.spectral_norm(nn.Linear(4, 4))
        self.dec = nn.Linear(4, 4)
    def forward(self, x):
        return self.dec(self.enc(x))


class Learner6:
    def __init__(self, net, opt):
        self.net = net
        self.opt = opt
    def update(self, batch):
        pred = self.net.forward(batch["obs"])  # expect: forward-called-directly
        loss = F.mse_loss(pred, batch["ret"])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


class LearnerRight6:
    def __init__(self, net, opt):
        self.net = net
        self.opt = opt
    def update(self, batch):
        pred = self.net(batch["obs"])
        loss = F.mse_loss(pred, batch["ret"])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
def step7(fsdp_model: FSDP, ids, labels):
    logits = fsdp_model.forward(ids)  # expect: forward-called-directly
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
def step_right7(fsdp_model: FSDP, ids, labels):
    logits = fsdp_model(ids)
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Vae8(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.enc = nn.ModuleList([nn.Linear(d, d), nn.Linear(d, 2 * d)])
        self.dec = nn.Linear(d, d)
    def forward(self, x):
        for layer in self.enc:
            x = layer.forward(x)  # expect: forward-called-directly
        mu, lv = x.chunk(2, -1)
        return self.dec(mu)


class VaeRight8(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.enc = nn.ModuleList([nn.Linear(d, d), nn.Linear(d, 2 * d)])
        self.dec = nn.Linear(d, d)
    def forward(self, x):
        for layer in self.enc:
            x = layer(x)
        mu, lv = x.chunk(2, -1)
        return self.dec(mu)


class Trainer9:
    def __init__(self, cfg):
        self.model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1).cuda())
        self.opt = torch.optim.Adam(self.model.parameters())
    def step(self, b):
        loss = F.mse_loss(self.model.forward(b["x"]), b["y"])  # expect: forward-called-directly
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


class TrainerRight9:
    def __init__(self, cfg):
        self.model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1).cuda())
        self.opt = torch.optim.Adam(self.model.parameters())
    def step(self, b):
        loss = F.mse_loss(self.model(b["x"]), b["y"])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


def embed10(models, x):
    outs = []
    for m in models:
        outs.append(m.forward(x))  # expect: forward-called-directly
    return torch.stack(outs)
nets = [nn.Linear(2, 2) for _ in range(3)]
embed10(nets, torch.randn(4, 2))


def embed_right10(models, x):
    outs = []
    for m in models:
        outs.append(m(x))
    return torch.stack(outs)
nets = [nn.Linear(2, 2) for _ in range(3)]
embed_right10(nets, torch.randn(4, 2))
