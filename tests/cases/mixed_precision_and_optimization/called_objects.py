"""Objects that scale and step when they are called, and micro-batches that are cut from a batch."""

import torch
import torch.nn.functional as F
from torch import nn


class Stepper:
    """Scales and steps, every so many calls."""

    def __init__(self, optimizer, every):
        self.optimizer, self.every = optimizer, every
        self.scaler = torch.amp.GradScaler("cuda")
        self.count = 0

    def __call__(self, loss, parameters, limit):
        self.count += 1
        self.scaler.scale(loss / self.every).backward()
        self.scaler.unscale_(self.optimizer)  # expect: scaler-touched-mid-accumulation
        if self.count % self.every == 0:
            torch.nn.utils.clip_grad_norm_(parameters, limit)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()


def by_stepper(model, loader, lr):
    stepper = Stepper(torch.optim.Adam(model.parameters(), lr=lr), 8)
    for batch in loader:
        with torch.autocast("cuda"):
            loss = model(batch)
        stepper(loss, model.parameters(), 1.0)


class LossScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cuda")

    def __call__(self, loss, optimizer, parameters, clip=None, update=True):
        self._scaler.scale(loss).backward()
        if update:
            self._scaler.unscale_(optimizer)
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(parameters, clip)
            self._scaler.step(optimizer)
        self._scaler.update()  # expect: scaler-touched-mid-accumulation


def by_flag(model, loader, optimizer, loss_scaler, args):
    for i, samples in enumerate(loader):
        with torch.autocast("cuda"):
            loss = model(samples) / args.accum_iter
        loss_scaler(loss, optimizer, parameters=model.parameters(), update=(i + 1) % args.accum_iter == 0)
        if (i + 1) % args.accum_iter == 0:
            optimizer.zero_grad()


def main(model, loader, optimizer, args):
    by_flag(model, loader, optimizer, LossScaler(), args)


class WholeLossScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cuda")

    def __call__(self, loss, optimizer, update=True):
        self._scaler.scale(loss).backward()
        if update:
            self._scaler.step(optimizer)
            self._scaler.update()


def by_whole(model, loader, optimizer, args):
    scaler = WholeLossScaler()
    for i, samples in enumerate(loader):
        loss = model(samples) / args.accum_iter
        scaler(loss, optimizer, update=(i + 1) % args.accum_iter == 0)
        if (i + 1) % args.accum_iter == 0:
            optimizer.zero_grad()


def in_chunks(model, loader, optimizer, micro=4):
    for images, labels in loader:
        optimizer.zero_grad()
        for x, y in zip(images.chunk(micro), labels.chunk(micro), strict=True):
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # expect: loss-not-averaged-over-accumulation
        optimizer.step()


def in_averaged_chunks(model, loader, optimizer, micro=4):
    for images, labels in loader:
        optimizer.zero_grad()
        for x, y in zip(images.chunk(micro), labels.chunk(micro), strict=True):
            loss = F.cross_entropy(model(x), y) / micro
            loss.backward()
        optimizer.step()


def sums_in_chunks(model, loader, optimizer, micro=4):
    """The sum over four chunks is the sum over the batch."""
    for images, labels in loader:
        optimizer.zero_grad()
        for x, y in zip(torch.chunk(images, micro), torch.chunk(labels, micro), strict=True):
            loss = F.cross_entropy(model(x), y, reduction="sum")
            loss.backward()
        optimizer.step()


class Detector(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.objectness = nn.BCELoss(reduction="none")

    def compute_loss(self, out, target):
        box = (out["box"] - target["box"]).abs().sum()
        return box + self.objectness(out["score"], target["score"]).mean()  # expect: bce-under-autocast

    def training_step(self, batch):
        return self.compute_loss(self.backbone(batch["image"]), batch)


def fit(detector: Detector, loader, optimizer, scaler):
    for batch in loader:
        with torch.autocast("cuda"):
            loss = detector.training_step(batch)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def of_several(net, loader):
    criteria = [nn.BCELoss(), nn.L1Loss()]
    for x, y in loader:
        with torch.autocast("cuda"):
            out = net(x)
            yield sum(criterion(out, y) for criterion in criteria)  # expect: bce-under-autocast
