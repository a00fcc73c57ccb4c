"""Criteria of a dictionary: the one that refuses autocast is left out of the region, or runs after it."""

import torch
from torch import nn

LOSSES = {"cls": nn.BCELoss(), "reg": nn.L1Loss()}


def train(net, loader, opt, scaler):
    for x, t in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            out = net(x)
        total = 0
        for k in out:
            total = total + LOSSES[k](out[k].float(), t[k])
        scaler.scale(total).backward()
        scaler.step(opt)
        scaler.update()


def guarded(net, loader, opt, scaler):
    for x, t in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            out = net(x)
            total = 0
            for k, criterion in LOSSES.items():
                if k == "cls":
                    continue
                total = total + criterion(out[k], t[k])
            for k in out:
                if k != "cls":
                    total = total + LOSSES[k](out[k], t[k])
        total = total + LOSSES["cls"](out["cls"].float(), t["cls"])
        scaler.scale(total).backward()
        scaler.step(opt)
        scaler.update()


def all_of_them(net, loader, opt, scaler):
    for x, t in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            out = net(x)
            total = sum(LOSSES[k](out[k], t[k]) for k in ("cls", "reg"))  # expect: bce-under-autocast
        scaler.scale(total).backward()
        scaler.step(opt)
        scaler.update()
