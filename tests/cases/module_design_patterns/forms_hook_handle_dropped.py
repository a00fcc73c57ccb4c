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
