"""Forms of mode-left-in-eval and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def evaluate2(model, loader, device):
    model.eval()  # expect: mode-left-in-eval
    total = 0
    with torch.no_grad():
        for b in loader:
            total += F.mse_loss(model(b["x"].to(device)), b["y"].to(device)).item()
    return total / len(loader)
def train2(model, loaders, cfg):
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    model.train()
    step = 0
    it = iter(loaders["train2"])
    while step < cfg.max_steps:
        b = next(it)
        loss = F.mse_loss(model(b["x"]), b["y"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % cfg.eval_every == 0:
            print(evaluate2(model, loaders["val"], cfg.device))


def evaluate_right2(model, loader, device):
    model.eval()
    total = 0
    with torch.no_grad():
        for b in loader:
            total += F.mse_loss(model(b["x"].to(device)), b["y"].to(device)).item()
    return total / len(loader)
def train_right2(model, loaders, cfg):
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    model.train()
    step = 0
    it = iter(loaders["train_right2"])
    while step < cfg.max_steps:
        model.train()
        b = next(it)
        loss = F.mse_loss(model(b["x"]), b["y"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % cfg.eval_every == 0:
            print(evaluate_right2(model, loaders["val"], cfg.device))


class Trainer4:
    def __init__(self, model, opt, train, val):
        self.model, self.opt, self.train_dl, self.val_dl = model, opt, train, val
        self.model.train()
    def fit(self, n):
        for e in range(n):
            self.run_epoch()
            self.validate()
    def run_epoch(self):
        for x, y in self.train_dl:
            self.opt.zero_grad()
            F.l1_loss(self.model(x), y).backward()
            self.opt.step()
    @torch.no_grad()
    def validate(self):
        self.model.eval()  # expect: mode-left-in-eval
        return sum(F.l1_loss(self.model(x), y).item() for x, y in self.val_dl)


class TrainerRight4:
    def __init__(self, model, opt, train, val):
        self.model, self.opt, self.train_dl, self.val_dl = model, opt, train, val
        self.model.train()
    def fit(self, n):
        for e in range(n):
            self.run_epoch()
            self.validate()
    def run_epoch(self):
        self.model.train()
        for x, y in self.train_dl:
            self.opt.zero_grad()
            F.l1_loss(self.model(x), y).backward()
            self.opt.step()
    @torch.no_grad()
    def validate(self):
        self.model.eval()
        return sum(F.l1_loss(self.model(x), y).item() for x, y in self.val_dl)


def main5(args):
    state = {"net": build5(args), "epoch": 0}
    state["opt"] = torch.optim.SGD(state["net"].parameters(), lr=0.1)
    state["net"].train()
    for epoch in range(args.epochs):
        for x, y in args.loader:
            state["opt"].zero_grad()
            F.cross_entropy(state["net"](x), y).backward()
            state["opt"].step()
        check5(state, args.val)
def check5(state, val):
    net = state["net"]
    net.eval()  # expect: mode-left-in-eval
    with torch.no_grad():
        return [net(x).argmax(1) for x, _ in val]
def build5(args):
    return nn.Sequential(nn.Linear(3, 9), nn.Dropout(0.5), nn.Linear(9, 2))


def main_right5(args):
    state = {"net": build_right5(args), "epoch": 0}
    state["opt"] = torch.optim.SGD(state["net"].parameters(), lr=0.1)
    state["net"].train()
    for epoch in range(args.epochs):
        state["net"].train()
        for x, y in args.loader:
            state["opt"].zero_grad()
            F.cross_entropy(state["net"](x), y).backward()
            state["opt"].step()
        check_right5(state, args.val)
def check_right5(state, val):
    net = state["net"]
    net.eval()
    with torch.no_grad():
        return [net(x).argmax(1) for x, _ in val]
def build_right5(args):
    return nn.Sequential(nn.Linear(3, 9), nn.Dropout(0.5), nn.Linear(9, 2))


class Policy6(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 64), nn.LayerNorm(64), nn.Dropout(0.1), nn.Linear(64, 2))
    def forward(self, s):
        return self.f(s)
def collect6(policy, env, n):
    policy.eval()  # expect: mode-left-in-eval
    buf = []
    s = env.reset()
    for _ in range(n):
        with torch.no_grad():
            a = policy(s).argmax(-1)
        s2, r, done = env.step(a)
        buf.append((s, a, r))
        s = s2
    return buf
def learn6(env, iters):
    policy = Policy6()
    opt = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for _ in range(iters):
        data = collect6(policy, env, 2048)
        for s, a, r in data:
            loss = (F.cross_entropy(policy(s), a, reduction="none") * r).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()


class PolicyRight6(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 64), nn.LayerNorm(64), nn.Dropout(0.1), nn.Linear(64, 2))
    def forward(self, s):
        return self.f(s)
def collect_right6(policy, env, n):
    policy.eval()
    buf = []
    s = env.reset()
    for _ in range(n):
        with torch.no_grad():
            a = policy(s).argmax(-1)
        s2, r, done = env.step(a)
        buf.append((s, a, r))
        s = s2
    return buf
def learn_right6(env, iters):
    policy = PolicyRight6()
    opt = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for _ in range(iters):
        data = collect_right6(policy, env, 2048)
        policy.train()
        for s, a, r in data:
            loss = (F.cross_entropy(policy(s), a, reduction="none") * r).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()


class Distiller7:
    def __init__(self, student, teacher, lr):
        self.student, self.teacher = student, teacher
        self.opt = torch.optim.SGD(student.parameters(), lr=lr)
    def fit(self, loader, val, n):
        self.student.train()
        self.teacher.eval()
        for _ in range(n):
            for x, y in loader:
                with torch.no_grad():
                    t = self.teacher(x)
                s = self.student(x)
                loss = F.kl_div(s.log_softmax(1), t.softmax(1), reduction="batchmean")
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(self.accuracy(val))
    def accuracy(self, val):
        self.student.eval()  # expect: mode-left-in-eval
        with torch.no_grad():
            return sum((self.student(x).argmax(1) == y).float().mean() for x, y in val) / len(val)


class DistillerRight7:
    def __init__(self, student, teacher, lr):
        self.student, self.teacher = student, teacher
        self.opt = torch.optim.SGD(student.parameters(), lr=lr)
    def fit(self, loader, val, n):
        self.student.train()
        self.teacher.eval()
        for _ in range(n):
            self.student.train()
            for x, y in loader:
                with torch.no_grad():
                    t = self.teacher(x)
                s = self.student(x)
                loss = F.kl_div(s.log_softmax(1), t.softmax(1), reduction="batchmean")
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(self.accuracy(val))
    def accuracy(self, val):
        self.student.eval()
        with torch.no_grad():
            return sum((self.student(x).argmax(1) == y).float().mean() for x, y in val) / len(val)


from contextlib import contextmanager
@contextmanager
def evaluating8(net):
    net.eval()  # expect: mode-left-in-eval
    with torch.no_grad():
        yield net
def run8(net, dl, vl, epochs):
    opt = torch.optim.Adam(net.parameters())
    net.train()
    for e in range(epochs):
        for x, y in dl:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        with evaluating8(net) as m:
            print(sum((m(x).argmax(1) == y).sum() for x, y in vl))


from contextlib import contextmanager
@contextmanager
def evaluating_right8(net):
    was = net.training
    net.eval()
    with torch.no_grad():
        yield net
    net.train(was)
def run_right8(net, dl, vl, epochs):
    opt = torch.optim.Adam(net.parameters())
    net.train()
    for e in range(epochs):
        for x, y in dl:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        with evaluating_right8(net) as m:
            print(sum((m(x).argmax(1) == y).sum() for x, y in vl))


class Seg9(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, c, 1))
    def forward(self, x):
        return self.body(x)
    def training_step(self, batch):
        return F.cross_entropy(self(batch["image"]), batch["mask"])
    def predict(self, x):
        self.eval()  # expect: mode-left-in-eval
        with torch.no_grad():
            return self(x).argmax(1)
def main9(loader, sample):
    seg = Seg9(4)
    opt = torch.optim.AdamW(seg.parameters(), lr=1e-3)
    seg.train()
    for i, batch in enumerate(loader):
        loss = seg.training_step(batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 50 == 0:
            save_image(seg.predict(sample), i)


class SegRight9(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, c, 1))
    def forward(self, x):
        return self.body(x)
    def training_step(self, batch):
        return F.cross_entropy(self(batch["image"]), batch["mask"])
    def predict(self, x):
        with torch.no_grad():
            return self(x).argmax(1)  # expect: mode-left-in-train
def main_right9(loader, sample):
    seg = SegRight9(4)
    opt = torch.optim.AdamW(seg.parameters(), lr=1e-3)
    seg.train()
    for i, batch in enumerate(loader):
        seg.train()
        loss = seg.training_step(batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 50 == 0:
            save_image(seg.predict(sample), i)


def fit11(model, train_dl, val_dl, epochs=3):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    best = 1e9
    for epoch in range(epochs):
        for xb, yb in train_dl:
            loss = F.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()  # expect: mode-left-in-eval
        with torch.no_grad():
            val = sum(F.mse_loss(model(xb), yb).item() for xb, yb in val_dl)
        if val < best:
            best = val
            torch.save(model.state_dict(), "best.pt")


def fit_right11(model, train_dl, val_dl, epochs=3):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    best = 1e9
    for epoch in range(epochs):
        model.train()
        for xb, yb in train_dl:
            loss = F.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = sum(F.mse_loss(model(xb), yb).item() for xb, yb in val_dl)
        if val < best:
            best = val
            torch.save(model.state_dict(), "best.pt")


class LM13(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.e, self.drop, self.o = nn.Embedding(v, d), nn.Dropout(0.1), nn.Linear(d, v)
    def forward(self, ids):
        return self.o(self.drop(self.e(ids)))
@torch.inference_mode()
def sample13(lm, start, n):
    lm.eval()  # expect: mode-left-in-eval
    ids = start
    for _ in range(n):
        ids = torch.cat([ids, lm(ids)[:, -1:].argmax(-1)], 1)
    return ids
def main13():
    lm = LM13(99, 32)
    opt = torch.optim.AdamW(lm.parameters())
    for epoch in range(3):
        for ids in batches13():
            loss = F.cross_entropy(lm(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(sample13(lm, ids[:1, :1], 20))
def batches13():
    yield torch.randint(0, 99, (4, 9))


class LMRight13(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.e, self.drop, self.o = nn.Embedding(v, d), nn.Dropout(0.1), nn.Linear(d, v)
    def forward(self, ids):
        return self.o(self.drop(self.e(ids)))
@torch.inference_mode()
def sample_right13(lm, start, n):
    lm.eval()
    ids = start
    for _ in range(n):
        ids = torch.cat([ids, lm(ids)[:, -1:].argmax(-1)], 1)
    lm.train()
    return ids
def main_right13():
    lm = LMRight13(99, 32)
    opt = torch.optim.AdamW(lm.parameters())
    for epoch in range(3):
        for ids in batches_right13():
            loss = F.cross_entropy(lm(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(sample_right13(lm, ids[:1, :1], 20))
def batches_right13():
    yield torch.randint(0, 99, (4, 9))
