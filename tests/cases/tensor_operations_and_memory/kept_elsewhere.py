"""Losses and outputs that helpers, meters, dicts and comprehensions keep."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class AverageMeter:
    def __init__(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


def fit(model, loader, opt):
    meter = AverageMeter()
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss, images.size(0))  # expect: graph-retained
    return meter.avg


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.history = []
        self.running = 0.0

    def training_step(self, batch):
        x, y = batch
        pred = self.model(x)
        loss = F.mse_loss(pred, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss, "pred": pred}

    def fit(self, loader):
        for i, batch in enumerate(loader):
            out = self.training_step(batch)
            self.history.append({"step": i, "loss": out["loss"]})  # expect: graph-retained
            self.running += out["loss"]  # expect: graph-retained

    def fit2(self, loader):
        all_preds = []
        for batch in loader:
            out = self.training_step(batch)
            all_preds.append(out["pred"])  # expect: graph-retained
        return torch.cat(all_preds)


def detection(model: nn.Module, loader, optimizer):
    sums = {}
    for images, targets in loader:
        losses = model(images, targets)
        total = losses["cls"] + losses["box"]
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        for name, value in losses.items():
            sums[name] = sums.get(name, 0.0) + value  # expect: graph-retained


def train_one(model, x, y, opt, crit):
    opt.zero_grad()
    out = model(x)
    loss = crit(out, y)
    loss.backward()
    opt.step()
    return loss, out


def main():
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    crit = nn.CrossEntropyLoss()
    loader = [(torch.randn(8, 4), torch.randint(0, 2, (8,)))] * 10
    for epoch in range(4):
        epoch_loss = 0.0
        outs = []
        for x, y in loader:
            loss, out = train_one(model, x, y, opt, crit)
            epoch_loss += loss  # expect: graph-retained
            outs.append(out)  # expect: graph-retained
        print(epoch_loss / len(loader))


def comp():
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    crit = nn.CrossEntropyLoss()
    loader = [(torch.randn(8, 4), torch.randint(0, 2, (8,)))] * 10

    def one(x, y):
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    losses = [one(x, y) for x, y in loader]  # expect: graph-retained
    return torch.stack(losses).mean()


def closure_track(model, loader, opt):
    losses = []

    def step(x, y):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss)  # expect: graph-retained

    for x, y in loader:
        step(x, y)
    return losses


def logs(model, loader, opt, log):
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.setdefault("train/loss", []).append(loss)  # expect: graph-retained


def ema(model, loader, opt):
    smooth = None
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        smooth = loss if smooth is None else 0.9 * smooth + 0.1 * loss  # expect: graph-retained
        print(smooth)


def gan(G, D, loader, og, od):
    g_losses, d_losses = [], []
    bce = nn.BCELoss()
    for real, _ in loader:
        z = torch.randn(real.size(0), 10)
        fake = G(z)
        d_loss = bce(D(real), torch.ones(real.size(0), 1)) + bce(D(fake.detach()), torch.zeros(real.size(0), 1))
        od.zero_grad()
        d_loss.backward()
        od.step()
        g_loss = bce(D(fake), torch.ones(real.size(0), 1))
        og.zero_grad()
        g_loss.backward()
        og.step()
        g_losses += [g_loss]  # expect: graph-retained
        d_losses.append(d_loss.item())


def the_sum_of_a_list_from_elsewhere(model, loader, opt):
    terms = gathered(model, loader)
    opt.zero_grad()
    torch.stack(terms).sum().backward()
    opt.step()


def gathered(model, loader):
    found = []
    for x, y in loader:
        found.append(F.mse_loss(model(x), y))
    return found


def note(log, values):
    for name, value in values.items():
        log[name] = log.get(name, 0.0) + value


def with_terms(model: nn.Module, loader, opt):
    totals, plain = {}, {}
    for x, y in loader:
        mean, spread = model(x)
        terms = {"fit": F.mse_loss(mean, y), "size": spread.pow(2).mean()}
        opt.zero_grad()
        (terms["fit"] + terms["size"]).backward()
        opt.step()
        note(totals, terms)  # expect: graph-retained
        note(plain, {name: value.item() for name, value in terms.items()})
    return totals, plain


def numbers_only(model, loader, opt):
    def one(x, y):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return [one(x, y) for x, y in loader]
