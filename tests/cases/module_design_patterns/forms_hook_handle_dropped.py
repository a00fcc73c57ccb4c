"""Forms of hook-handle-dropped and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def evaluate1(model, loader):
    acts = []
    model.layer4.register_forward_hook(lambda m, i, o: acts.append(o.detach()))  # expect: hook-handle-dropped
    with torch.no_grad():
        for x, _ in loader:
            model(x)
    return torch.cat(acts)
def fit1(model, train, val, opt, epochs):
    for epoch in range(epochs):
        model.train()
        for x, y in train:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
        model.eval()
        evaluate1(model, val)


def evaluate_right1(model, loader):
    acts = []
    handle = model.layer4.register_forward_hook(lambda m, i, o: acts.append(o.detach()))
    with torch.no_grad():
        for x, _ in loader:
            model(x)
    handle.remove()
    return torch.cat(acts)
def fit_right1(model, train, val, opt, epochs):
    for epoch in range(epochs):
        model.train()
        for x, y in train:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
        model.eval()
        evaluate_right1(model, val)


class Trainer2:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.feats = {}
    def grab(self, m, i, o):
        self.feats["enc"] = o
    def step(self, x, y):
        self.model.encoder.register_forward_hook(self.grab)  # expect: hook-handle-dropped
        loss = F.mse_loss(self.model(x), y) + self.feats["enc"].pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def fit(self, loader):
        for x, y in loader:
            self.step(x, y)


class TrainerRight2:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.feats = {}
        self.model.encoder.register_forward_hook(self.grab)
    def grab(self, m, i, o):
        self.feats["enc"] = o
    def step(self, x, y):
        loss = F.mse_loss(self.model(x), y) + self.feats["enc"].pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def fit(self, loader):
        for x, y in loader:
            self.step(x, y)


class Feat4(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.out = None
    def _save(self, m, i, o):
        self.out = o
    def forward(self, x):
        self.backbone.layer3.register_forward_hook(self._save)  # expect: hook-handle-dropped
        self.backbone(x)
        return self.out


class FeatRight4(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.out = None
        self.backbone.layer3.register_forward_hook(self._save)
    def _save(self, m, i, o):
        self.out = o
    def forward(self, x):
        self.backbone(x)
        return self.out


def attach5(model, store):
    for name, mod in model.named_modules():
        if isinstance(mod, nn.ReLU):
            mod.register_forward_hook(lambda m, i, o, name=name: store.__setitem__(name, o))  # expect: hook-handle-dropped
def main5(model, batches):
    for x in batches:
        store = {}
        attach5(model, store)
        model(x)
        print({k: v.mean().item() for k, v in store.items()})


def attach_right5(model, store):
    for name, mod in model.named_modules():
        if isinstance(mod, nn.ReLU):
            mod.register_forward_hook(lambda m, i, o, name=name: store.__setitem__(name, o))
def main_right5(model, batches):
    store = {}
    attach_right5(model, store)
    for x in batches:
        model(x)
        print({k: v.mean().item() for k, v in store.items()})


def grad_norms6(model, loss_fn, batches):
    out = {}
    for x, y in batches:
        for n, m in model.named_children():
            m.register_full_backward_hook(lambda mod, gi, go, n=n: out.setdefault(n, []).append(go[0].norm().item()))  # expect: hook-handle-dropped
        loss_fn(model(x), y).backward()
        model.zero_grad()
    return out


def grad_norms_right6(model, loss_fn, batches):
    out = {}
    for x, y in batches:
        for n, m in model.named_children():
            pass
        loss_fn(model(x), y).backward()
        model.zero_grad()
    return out


class FeatureNet7(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk
    def forward(self, x):
        feats = []
        for layer in self.trunk.children():
            layer.register_forward_hook(lambda m, i, o: feats.append(o))  # expect: hook-handle-dropped
        self.trunk(x)
        return feats


class FeatureNetRight7(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk
    def forward(self, x):
        feats = []
        for layer in self.trunk.children():
            pass
        self.trunk(x)
        return feats


def gradcam8(net, img, cls):
    store = {}
    target = net.layer4[-1]
    target.register_forward_hook(lambda m, i, o: store.update(a=o))  # expect: hook-handle-dropped
    target.register_full_backward_hook(lambda m, gi, go: store.update(g=go[0]))  # expect: hook-handle-dropped
    net(img)[0, cls].backward()
    return (store["g"].mean((2, 3), keepdim=True) * store["a"]).sum(1)
def main8(net, images):
    maps = []
    for img in images:
        maps.append(gradcam8(net, img, 3))
    return maps


def gradcam_right8(net, img, cls):
    store = {}
    target = net.layer4[-1]
    hs = [target.register_forward_hook(lambda m, i, o: store.update(a=o)), target.register_full_backward_hook(lambda m, gi, go: store.update(g=go[0]))]
    net(img)[0, cls].backward()
    for h in hs: h.remove()
    return (store["g"].mean((2, 3), keepdim=True) * store["a"]).sum(1)
def main_right8(net, images):
    maps = []
    for img in images:
        maps.append(gradcam_right8(net, img, 3))
    return maps


class Monitor9:
    def __init__(self, model):
        self.model = model
        self.stats = []
    def begin_epoch(self):
        self.model.register_forward_hook(self._record)  # expect: hook-handle-dropped
    def _record(self, m, i, o):
        self.stats.append(o.mean().item())
def train9(model, loader, opt, epochs):
    mon = Monitor9(model)
    for _ in range(epochs):
        mon.begin_epoch()
        for x, y in loader:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()


class MonitorRight9:
    def __init__(self, model):
        self.model = model
        self.stats = []
    def begin_epoch(self):
        self.stats.clear()
    def _record(self, m, i, o):
        self.stats.append(o.mean().item())
def train_right9(model, loader, opt, epochs):
    mon = MonitorRight9(model)
    for _ in range(epochs):
        mon.begin_epoch()
        for x, y in loader:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()


def train10(model, loader, opt):
    it = iter(loader)
    step = 0
    while step < 1000:
        x, y = next(it)
        norms = {}
        model.head.register_full_backward_pre_hook(lambda m, g: norms.update(head=g[0].norm()))  # expect: hook-handle-dropped
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1


def train_right10(model, loader, opt):
    it = iter(loader)
    step = 0
    while step < 1000:
        x, y = next(it)
        norms = {}
        pass
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
