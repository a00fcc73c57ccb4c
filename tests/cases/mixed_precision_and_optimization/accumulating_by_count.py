"""Gradients of several batches, counted by hand."""

import torch
import torch.nn.functional as F
from torch import nn

EACH = 4


def counted(net: nn.Module, loader):
    optimizer = torch.optim.Adam(net.parameters())
    optimizer.zero_grad()
    count = 0
    for x, y in loader:
        F.cross_entropy(net(x), y).backward()  # expect: loss-not-averaged-over-accumulation
        count += 1
        if count == EACH:
            optimizer.step()
            optimizer.zero_grad()
            count = 0


def counted_and_left(net: nn.Module, loader, micro=4):
    optimizer = torch.optim.Adam(net.parameters())
    done = 0
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        loss.backward()  # expect: loss-not-averaged-over-accumulation
        done += 1
        if done < micro:
            continue
        optimizer.step()
        optimizer.zero_grad()
        done = 0


def remainder_by_not(net: nn.Module, loader, group=4):
    optimizer = torch.optim.Adam(net.parameters())
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(net(x), y)
        loss.backward()  # expect: loss-not-averaged-over-accumulation
        if not (i + 1) % group:
            optimizer.step()
            optimizer.zero_grad()


def averaged_only_for_people(net: nn.Module, loader, cfg):
    optimizer = torch.optim.Adam(net.parameters())
    running = 0.0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(net(x), y)
        loss.backward()  # expect: loss-not-averaged-over-accumulation
        running += loss.item() / cfg["together"]
        if (i + 1) % cfg["together"] == 0:
            optimizer.step()
            optimizer.zero_grad()
            running = 0.0


def counted_and_averaged(net: nn.Module, loader, parts=4):
    optimizer = torch.optim.Adam(net.parameters())
    done = 0
    for x, y in loader:
        loss = F.cross_entropy(net(x), y) / parts
        loss.backward()
        done += 1
        if done < parts:
            continue
        optimizer.step()
        optimizer.zero_grad()
        done = 0


def patience(net: nn.Module, loader, limit):
    optimizer = torch.optim.Adam(net.parameters())
    bad, best = 0, 1e9
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        if loss.item() < best:
            best, bad = loss.item(), 0
        else:
            bad += 1
        if bad >= limit:
            break
        optimizer.step()


class Counting:
    def __init__(self, model, each):
        self.model, self.each, self.micro = model, each, 0
        self.optimizer = torch.optim.Adam(model.parameters())
        self.scaler = torch.amp.GradScaler("cuda")

    def backward(self, loss):
        self.scaler.scale(loss / self.each).backward()
        self.scaler.update()  # expect: scaler-touched-mid-accumulation

    def maybe_step(self):
        self.micro += 1
        if self.micro % self.each == 0:
            self.scaler.step(self.optimizer)
            self.optimizer.zero_grad()

    def fit(self, loader):
        for x in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = self.model(x).mean()
            self.backward(loss)
            self.maybe_step()


def left_by_a_name(net: nn.Module, loader, args):
    optimizer = torch.optim.Adam(net.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for turn, (x, y) in enumerate(loader, 1):
        full = turn % args.accumulate == 0 or turn == len(loader)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()  # expect: loss-not-averaged-over-accumulation
        if not full:
            continue
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
