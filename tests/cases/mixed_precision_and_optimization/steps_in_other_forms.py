"""Steps with a scaler as trainers, helpers and adversarial losses write them."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast


class Trainer:
    def __init__(self, cfg, model, loaders):
        self.cfg = cfg
        self.model = model
        self.loaders = loaders
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
        self.scaler = torch.amp.GradScaler("cuda", enabled=cfg.amp)
        self.criterion = nn.CrossEntropyLoss()

    def run_epoch(self, epoch):
        self.model.train()
        for step, (x, y) in enumerate(self.loaders["train"]):
            x, y = x.cuda(), y.cuda()
            with torch.autocast("cuda", enabled=self.cfg.amp):
                loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def run_epoch2(self, epoch):
        for step, (x, y) in enumerate(self.loaders["train"]):
            with torch.autocast("cuda", enabled=self.cfg.amp):
                loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)  # expect: scaler-not-updated


def main():
    model = nn.Linear(4, 4).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    grad_scaler = GradScaler("cuda", enabled=True)
    for epoch in range(3):
        for i in range(100):
            x = torch.randn(4, 4, device="cuda")
            opt.zero_grad()
            with autocast("cuda"):
                out = model(x)
                loss = F.mse_loss(out, x)
            grad_scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-before-unscale
            grad_scaler.step(opt)
            grad_scaler.update()


def train_one_epoch(net, loader, optimizer, scaler, device, max_norm):
    net.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        with torch.autocast(device_type=device, dtype=torch.float16):
            logits = net(images)
            loss = F.cross_entropy(logits, labels)
        loss.backward()  # expect: scaler-bypassed
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()


def gan(netG, netD, loader, opt_g, opt_d, crit):
    scaler_g, scaler_d = GradScaler("cuda"), GradScaler("cuda")
    for real in loader:
        opt_d.zero_grad()
        with autocast("cuda"):
            fake = netG(torch.randn(8, 10, device="cuda"))
            d = crit(netD(real), torch.ones(8, device="cuda")) + crit(netD(fake.detach()), torch.zeros(8, device="cuda"))
        scaler_d.scale(d).backward()
        scaler_d.step(opt_d)
        scaler_d.update()
        opt_g.zero_grad()
        with autocast("cuda"):
            g = crit(netD(fake), torch.ones(8, device="cuda"))
        scaler_g.scale(g).backward()
        scaler_g.step(opt_g)  # expect: scaler-not-updated


def wrapper_step(loss, optimizer, scaler, parameters, clip=None):
    scaler.scale(loss).backward()
    if clip:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, clip)
    optimizer.step()  # expect: scaler-bypassed
    scaler.update()


def uses(model, loader, optimizer, scaler):
    for x in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = model(x).mean()
        wrapper_step(loss, optimizer, scaler, model.parameters())


def unscaled_when_it_steps(model, loader, optimizer, scaler, every):
    for i, x in enumerate(loader):
        with autocast("cuda"):
            loss = model(x).mean() / every
        scaler.scale(loss).backward()
        if i % every == 0:
            scaler.unscale_(optimizer)
        if i % every == 0:
            optimizer.step()  # expect: scaler-bypassed
            scaler.update()
            optimizer.zero_grad()


def unscaled_when_it_is_scaled(model, loader, optimizer, args):
    scaler = GradScaler("cuda", enabled=args.amp)
    for x in loader:
        optimizer.zero_grad()
        with autocast("cuda", enabled=args.amp):
            loss = model(x).mean()
        scaler.scale(loss).backward()
        if args.amp:
            scaler.unscale_(optimizer)
        optimizer.step()  # expect: scaler-bypassed
        scaler.update()
