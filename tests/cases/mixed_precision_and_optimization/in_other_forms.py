"""Accumulation, formats and schedules in other forms: by continue, by a name for the test, in forward."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast


def accumulate(model, loader, optimizer, args):
    scaler = GradScaler("cuda")
    optimizer.zero_grad()
    for i, batch in enumerate(loader):
        with autocast("cuda"):
            out = model(**batch)
            loss = out.loss
        scaler.scale(loss).backward()  # expect: loss-not-averaged-over-accumulation
        if (i + 1) % args.grad_accum == 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


class T:
    def __init__(self, model, accum):
        self.model = model
        self.accum = accum
        self.opt = torch.optim.AdamW(model.parameters())
        self.scaler = GradScaler("cuda")

    def micro(self, b):
        with autocast("cuda"):
            loss = self.model(b).mean() / self.accum
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)  # expect: scaler-touched-mid-accumulation
        return loss.item()

    def run(self, loader):
        for n, b in enumerate(loader):
            self.micro(b)
            if (n + 1) % self.accum != 0:
                continue
            self.scaler.step(self.opt)
            self.scaler.update()
            self.opt.zero_grad()


def two(model, loader, optimizer, accum_steps):
    step = 0
    scaler = GradScaler("cuda")
    for x, y in loader:
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y) / accum_steps
        scaler.scale(loss).backward()
        step += 1
        if step % accum_steps == 0:
            scaler.step(optimizer)
            optimizer.zero_grad(set_to_none=True)
        scaler.update()  # expect: scaler-touched-mid-accumulation


def three(model, loader, optimizer, accum_steps):
    for i, (x, y) in enumerate(loader):
        is_last = (i + 1) % accum_steps == 0
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: loss-not-averaged-over-accumulation
        if is_last:
            optimizer.step()
            optimizer.zero_grad()


def bce_lambda(model, loader, optimizer, scaler):
    loss_fn = nn.BCELoss(reduction="mean")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            p = model(x).squeeze(-1)
            loss = loss_fn(p, y.float())  # expect: bce-under-autocast
        loss.backward()
        optimizer.step()


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 1)
        self.loss = nn.BCELoss()

    def forward(self, x, y):
        return self.loss(torch.sigmoid(self.l(x)), y)  # expect: bce-under-autocast


def use(loader, scaler):
    m = M().cuda()
    opt = torch.optim.SGD(m.parameters(), 0.1)
    for x, y in loader:
        opt.zero_grad()
        with autocast("cuda"):
            loss = m(x, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


def inside(model, loader, optimizer):
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # expect: backward-in-autocast
            optimizer.step()


def bf(model, loader, optimizer):
    dtype = torch.bfloat16
    scaler = torch.amp.GradScaler()  # expect: scaler-with-bf16
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast(device_type="cuda", dtype=dtype):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def half(loader):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)).cuda()
    model.half()  # expect: half-model-trained
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x.half()), y.half())
        loss.backward()
        optimizer.step()


def norm(v):
    v = v.half()
    return v / (v.norm(dim=-1, keepdim=True) + 1e-12)  # expect: eps-vanishes


def sched(model, loader, opt, epochs):
    s = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: 1.0)
    scaler = GradScaler("cuda")
    for e in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            with autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            s.step()  # expect: scheduler-on-skipped-step
            scaler.update()
