"""Cadences that methods and properties know, micro-batches in a list, and autocast around callers."""

import torch
import torch.nn.functional as F


class Loop:
    def __init__(self, net, optimizer, n):
        self.net, self.optimizer, self.n, self.seen = net, optimizer, n, 0
        self.scaler = torch.amp.GradScaler("cuda")

    @property
    def is_due(self):
        return self.seen % self.n == 0

    def fit(self, data):
        for batch in data:
            self.seen += 1
            with torch.autocast("cuda"):
                loss = self.net(batch) / self.n
            self.scaler.scale(loss).backward()
            self.scaler.update()  # expect: scaler-touched-mid-accumulation
            if self.is_due:
                self.scaler.step(self.optimizer)
                self.optimizer.zero_grad()


class Accumulating:
    def __init__(self, net, optimizer, accumulate):
        self.net, self.optimizer, self.accumulate, self.seen = net, optimizer, accumulate, 0

    def should_step(self):
        return self.seen % self.accumulate == 0

    def fit(self, data):
        for x, y in data:
            loss = F.l1_loss(self.net(x), y)
            loss.backward()  # expect: loss-not-averaged-over-accumulation
            self.seen += 1
            if self.should_step():
                self.optimizer.step()
                self.optimizer.zero_grad()


class Averaging(Accumulating):
    def fit(self, data):
        for x, y in data:
            loss = F.l1_loss(self.net(x), y) / self.accumulate
            loss.backward()
            self.seen += 1
            if self.should_step():
                self.optimizer.step()
                self.optimizer.zero_grad()


class Early:
    """A property that counts nothing."""

    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    @property
    def is_training(self):
        return self.net.training

    def fit(self, data):
        for x, y in data:
            loss = F.l1_loss(self.net(x), y)
            loss.backward()
            if self.is_training:
                self.optimizer.step()
                self.optimizer.zero_grad()


def add_up(model, micro_batches, optimizer):
    optimizer.zero_grad()
    for part in micro_batches:
        loss = model(part["x"], part["y"]).mean()
        loss.backward()  # expect: loss-not-averaged-over-accumulation
    optimizer.step()


def average(model, micro_batches, optimizer):
    optimizer.zero_grad()
    for part in micro_batches:
        loss = model(part["x"], part["y"]).mean() / len(micro_batches)
        loss.backward()
    optimizer.step()


def train(model, batches, optimizer):
    for batch in batches:
        add_up(model, batch.split_evenly(8), optimizer)


def train_with_averages(model, batches, optimizer):
    for batch in batches:
        average(model, batch.split_evenly(8), optimizer)


def only_the_last_is_scaled(model, loader, optimizer, args):
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y) / args.accum
        if (i + 1) % args.accum:
            with model.no_sync():
                loss.backward()  # expect: scaler-bypassed
            continue
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def all_are_scaled(model, loader, optimizer, args):
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y) / args.accum
        if (i + 1) % args.accum:
            with model.no_sync():
                scaler.scale(loss).backward()
            continue
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


class Mixed:
    def __enter__(self):
        self.context = torch.autocast("cuda", dtype=torch.bfloat16)
        return self.context.__enter__()

    def __exit__(self, *raised):
        return self.context.__exit__(*raised)


def inside_own_class(net, data, optimizer):
    for x in data:
        with Mixed():
            loss = net(x).mean()
            loss.backward()  # expect: backward-in-autocast
        optimizer.step()
        optimizer.zero_grad()


class Agent:
    def __init__(self, q):
        self.q = q
        self.optimizer = torch.optim.Adam(q.parameters(), 1e-4)

    def optimize(self, loss):
        self.optimizer.zero_grad()
        loss.backward()  # expect: backward-in-autocast
        self.optimizer.step()

    @torch.autocast("cuda", dtype=torch.bfloat16)
    def update(self, states, targets):
        loss = (self.q(states) - targets).pow(2).mean()
        self.optimize(loss)


class CarefulAgent:
    def __init__(self, q):
        self.q = q
        self.optimizer = torch.optim.Adam(q.parameters(), 1e-4)

    def optimize(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def update(self, states, targets):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = (self.q(states) - targets).pow(2).mean()
        self.optimize(loss)


def attention(queries, keys, values):
    queries, keys, values = queries.half().relu(), keys.half().relu(), values.half()
    z = torch.einsum("bnd,bd->bn", queries, keys.sum(1))
    return torch.einsum("bnd,bde->bne", queries, values) / (z.unsqueeze(-1) + 1e-8)  # expect: eps-vanishes


def clipped_by_setting(model, loader, optimizer, cfg):
    scaler = torch.amp.GradScaler("cuda")
    for n, (a, b) in enumerate(loader):
        with torch.autocast("cuda"):
            loss = model(a, b) / cfg.every
        scaler.scale(loss).backward()
        if cfg.clip:
            scaler.unscale_(optimizer)  # expect: scaler-touched-mid-accumulation
            torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        if (n + 1) % cfg.every == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def clipped_when_due(model, loader, optimizer, cfg):
    scaler = torch.amp.GradScaler("cuda")
    for n, (a, b) in enumerate(loader):
        due = (n + 1) % cfg.every == 0
        with torch.autocast("cuda"):
            loss = model(a, b) / cfg.every
        scaler.scale(loss).backward()
        if due and cfg.clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        if (n + 1) % cfg.every == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
