"""Forms of mode-left-in-train and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def train_epoch1(net, dl, opt):
    net.train()
    for x, y in dl:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
def test_epoch1(net, dl):
    hits = 0
    with torch.no_grad():
        for x, y in dl:
            hits += (net(x).argmax(1) == y).sum().item()  # expect: mode-left-in-train
    return hits
def main1(tr, te):
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.LazyLinear(10))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(9):
        train_epoch1(net, tr, opt)
        print(test_epoch1(net, te))


def train_epoch_right1(net, dl, opt):
    net.train()
    for x, y in dl:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
def test_epoch_right1(net, dl):
    net.eval()
    hits = 0
    with torch.no_grad():
        for x, y in dl:
            hits += (net(x).argmax(1) == y).sum().item()
    return hits
def main_right1(tr, te):
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.LazyLinear(10))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(9):
        train_epoch_right1(net, tr, opt)
        print(test_epoch_right1(net, te))


class Runner3:
    def __init__(self, cfg):
        self.model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 1))
        self.opt = torch.optim.Adam(self.model.parameters())
        self.dl = {"train": cfg.train, "val": cfg.val}
    def run(self, n):
        for epoch in range(n):
            self.model.train()
            for x, y in self.dl["train"]:
                self.opt.zero_grad()
                F.mse_loss(self.model(x), y).backward()
                self.opt.step()
            self.evaluate()
    @torch.no_grad()
    def evaluate(self):
        return sum(F.mse_loss(self.model(x), y).item() for x, y in self.dl["val"])  # expect: mode-left-in-train


class RunnerRight3:
    def __init__(self, cfg):
        self.model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 1))
        self.opt = torch.optim.Adam(self.model.parameters())
        self.dl = {"train": cfg.train, "val": cfg.val}
    def run(self, n):
        for epoch in range(n):
            self.model.train()
            for x, y in self.dl["train"]:
                self.opt.zero_grad()
                F.mse_loss(self.model(x), y).backward()
                self.opt.step()
            self.evaluate()
    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        return sum(F.mse_loss(self.model(x), y).item() for x, y in self.dl["val"])


class Lm5(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.drop = nn.Dropout(0.1)
        self.o = nn.Linear(d, v)
    def forward(self, ids):
        return self.o(self.drop(self.e(ids)))
def estimate_loss5(model, data, iters):
    losses = torch.zeros(iters)
    with torch.no_grad():
        for k in range(iters):
            x, y = get_batch5(data, "val")
            losses[k] = F.cross_entropy(model(x).flatten(0, 1), y.flatten())  # expect: mode-left-in-train
    return losses.mean()
def get_batch5(data, split):
    d = data[split]
    ix = torch.randint(len(d) - 8, (4,))
    return torch.stack([d[i:i + 8] for i in ix]), torch.stack([d[i + 1:i + 9] for i in ix])
def main5(data):
    model = Lm5(100, 32)
    opt = torch.optim.AdamW(model.parameters())
    for it in range(1000):
        if it % 100 == 0:
            print(it, estimate_loss5(model, data, 20))
        x, y = get_batch5(data, "train")
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()


class LmRight5(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.drop = nn.Dropout(0.1)
        self.o = nn.Linear(d, v)
    def forward(self, ids):
        return self.o(self.drop(self.e(ids)))
def estimate_loss_right5(model, data, iters):
    model.eval()
    losses = torch.zeros(iters)
    with torch.no_grad():
        for k in range(iters):
            x, y = get_batch_right5(data, "val")
            losses[k] = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    model.train()
    return losses.mean()
def get_batch_right5(data, split):
    d = data[split]
    ix = torch.randint(len(d) - 8, (4,))
    return torch.stack([d[i:i + 8] for i in ix]), torch.stack([d[i + 1:i + 9] for i in ix])
def main_right5(data):
    model = LmRight5(100, 32)
    opt = torch.optim.AdamW(model.parameters())
    for it in range(1000):
        if it % 100 == 0:
            print(it, estimate_loss_right5(model, data, 20))
        x, y = get_batch_right5(data, "train")
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()


class Agent7(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.1), nn.ReLU(), nn.Linear(64, 2))
    def forward(self, s):
        return self.q(s)
def evaluate7(agent, env, episodes):
    total = 0
    for _ in range(episodes):
        s, done = env.reset(), False
        while not done:
            with torch.no_grad():
                a = agent(s).argmax(-1)  # expect: mode-left-in-train
            s, r, done = env.step(a)
            total += r
    return total / episodes
def main7(env, buffer):
    agent = Agent7()
    opt = torch.optim.Adam(agent.parameters())
    for step in range(10000):
        s, a, r, s2 = buffer.sample(32)
        target = r + 0.99 * agent(s2).max(1).values.detach()
        loss = F.mse_loss(agent(s).gather(1, a), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 500 == 0:
            print(evaluate7(agent, env, 5))


class AgentRight7(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.1), nn.ReLU(), nn.Linear(64, 2))
    def forward(self, s):
        return self.q(s)
def evaluate_right7(agent, env, episodes):
    agent.eval()
    total = 0
    for _ in range(episodes):
        s, done = env.reset(), False
        while not done:
            with torch.no_grad():
                a = agent(s).argmax(-1)
            s, r, done = env.step(a)
            total += r
    agent.train()
    return total / episodes
def main_right7(env, buffer):
    agent = AgentRight7()
    opt = torch.optim.Adam(agent.parameters())
    for step in range(10000):
        s, a, r, s2 = buffer.sample(32)
        target = r + 0.99 * agent(s2).max(1).values.detach()
        loss = F.mse_loss(agent(s).gather(1, a), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 500 == 0:
            print(evaluate_right7(agent, env, 5))


class Gan9:
    def __init__(self):
        self.nets = {"g": nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Linear(32, 2)), "d": nn.Linear(2, 1)}
        self.opts = {k: torch.optim.Adam(n.parameters()) for k, n in self.nets.items()}
    def train(self, loader, val_loader, n):
        for _ in range(n):
            self.nets["g"].train()
            for real in loader:
                fake = self.nets["g"](torch.randn(len(real), 8))
                ld = F.softplus(-self.nets["d"](real)).mean() + F.softplus(self.nets["d"](fake.detach())).mean()
                self.opts["d"].zero_grad(); ld.backward(); self.opts["d"].step()
                lg = F.softplus(-self.nets["d"](fake)).mean()
                self.opts["g"].zero_grad(); lg.backward(); self.opts["g"].step()
            self.score(val_loader)
    @torch.no_grad()
    def score(self, val_loader):
        return sum((self.nets["g"](z) - x).abs().mean() for z, x in val_loader)  # expect: mode-left-in-train


class GanRight9:
    def __init__(self):
        self.nets = {"g": nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Linear(32, 2)), "d": nn.Linear(2, 1)}
        self.opts = {k: torch.optim.Adam(n.parameters()) for k, n in self.nets.items()}
    def train(self, loader, val_loader, n):
        for _ in range(n):
            self.nets["g"].train()
            for real in loader:
                fake = self.nets["g"](torch.randn(len(real), 8))
                ld = F.softplus(-self.nets["d"](real)).mean() + F.softplus(self.nets["d"](fake.detach())).mean()
                self.opts["d"].zero_grad(); ld.backward(); self.opts["d"].step()
                lg = F.softplus(-self.nets["d"](fake)).mean()
                self.opts["g"].zero_grad(); lg.backward(); self.opts["g"].step()
            self.score(val_loader)
    @torch.no_grad()
    def score(self, val_loader):
        self.nets["g"].eval()
        return sum((self.nets["g"](z) - x).abs().mean() for z, x in val_loader)


class Trainer10:
    def __init__(self, model, loaders):
        self.model = model
        self.loaders = loaders
        self.optim = torch.optim.Adam(model.parameters())
    def fit(self, n):
        for e in range(n):
            self.train_epoch()
            self.val_epoch()
    def train_epoch(self):
        self.model.train()
        for b in self.loaders["train"]:
            loss = self.model(b["x"]).mean()
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
    def val_epoch(self):
        tot = 0
        with torch.no_grad():
            for b in self.loaders["val"]:
                tot += self.model(b["x"]).mean().item()  # expect: mode-left-in-train
        return tot


class TrainerRight10:
    def __init__(self, model, loaders):
        self.model = model
        self.loaders = loaders
        self.optim = torch.optim.Adam(model.parameters())
    def fit(self, n):
        for e in range(n):
            self.train_epoch()
            self.val_epoch()
    def train_epoch(self):
        self.model.train()
        for b in self.loaders["train"]:
            loss = self.model(b["x"]).mean()
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
    def val_epoch(self):
        self.model.eval()
        tot = 0
        with torch.no_grad():
            for b in self.loaders["val"]:
                tot += self.model(b["x"]).mean().item()
        return tot
