"""Where a resumed training goes on: the epoch that was saved, the one after, or two further."""

import argparse
import os

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau

from mylib.engine import evaluate, train_one_epoch


def run_again(model: nn.Module, loader, epochs, path, tmp):
    optimizer = optim.AdamW(model.parameters())
    start_epoch = 0
    if os.path.exists(path):
        checkpoint = torch.load(path, map_location="cpu")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        start_epoch = checkpoint["epoch"]  # expect: resume-off-by-one
    for epoch in range(start_epoch, epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp)
        os.replace(tmp, path)


def save_checkpoint(folder, model, optimizer, epoch):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    state["epoch"] = epoch
    torch.save(state, os.path.join(folder, f"{epoch:03d}.pt"))


def load_checkpoint(path, model, optimizer):
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1  # expect: resume-off-by-one


def left_out(net: nn.Module, loader, args):
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    start = load_checkpoint(args.resume, net, optimizer) if args.resume else 0
    for epoch in range(start, args.epochs):
        train_one_epoch(net, loader, optimizer)
        save_checkpoint(args.folder, net, optimizer, epoch + 1)


class Trainer:
    """The scheduler's state is one step old when it is saved."""

    def __init__(self, model: nn.Module, loader, folder):
        self.model, self.loader, self.folder, self.start = model, loader, folder, 0
        self.optimizer = optim.Adam(model.parameters())
        self.scheduler = CosineAnnealingLR(self.optimizer, 100)

    def resume(self, path):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.start = state["epoch"] + 1

    def save(self, epoch):
        torch.save(  # expect: resume-off-by-one
            {
                "epoch": epoch,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
            },
            f"{self.folder}/{epoch}.pt",
        )

    def step(self, x, y):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(x), y).backward()
        self.optimizer.step()

    def run(self, epochs):
        for epoch in range(self.start, epochs):
            for x, y in self.loader:
                self.step(x, y)
            if epoch % 5 == 0:
                self.save(epoch)
            self.scheduler.step()


# Look-alikes.


def counted_on(model: nn.Module, loader, val, epochs, resume):
    parser = argparse.ArgumentParser()
    parser.add_argument("--start-epoch", type=int, default=0)
    args = parser.parse_args()
    optimizer = optim.AdamW(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer)
    if resume:
        state = torch.load(resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        args.start_epoch = state["epoch"]
    for epoch in range(args.start_epoch, epochs):
        train_one_epoch(model, loader, optimizer)
        scheduler.step(evaluate(model, val))
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1, "scheduler": scheduler.state_dict()}
        torch.save(state, f"{epoch}.pt")


def from_one(model: nn.Module, loader, epochs, resume):
    optimizer = optim.AdamW(model.parameters())
    last = 0
    if resume:
        state = torch.load(resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        last = state["epoch"]
    for epoch in range(last + 1, epochs + 1):
        train_one_epoch(model, loader, optimizer)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, f"{epoch}.pt")


def in_the_middle(model: nn.Module, loader, epochs, resume):
    """What was interrupted within an epoch, or saved before it, runs that epoch again on purpose."""
    optimizer = optim.AdamW(model.parameters())
    start = 0
    if resume:
        state = torch.load(resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"]
    for epoch in range(start, epochs):
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            if i % 1000 == 0:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, f"{epoch}-{i}.pt")


def before_it(model: nn.Module, loader, epochs, resume):
    optimizer = optim.AdamW(model.parameters())
    start = torch.load(resume)["epoch"] if resume else 0
    optimizer.load_state_dict(torch.load(resume)["optimizer"])
    for epoch in range(start, epochs):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, f"{epoch}.pt")
        train_one_epoch(model, loader, optimizer)


def made_up_for(model: nn.Module, loader, epochs, resume):
    optimizer = optim.AdamW(model.parameters())
    start = 0
    if resume:
        state = torch.load(resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"]
        start += 1
    for epoch in range(start, epochs):
        train_one_epoch(model, loader, optimizer)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, f"{epoch}.pt")


def interrupted(model: nn.Module, loader, epochs, resume):
    optimizer = optim.AdamW(model.parameters())
    start = torch.load(resume)["epoch"] if resume else 0
    optimizer.load_state_dict(torch.load(resume)["optimizer"])
    for epoch in range(start, epochs):
        try:
            train_one_epoch(model, loader, optimizer)
        except KeyboardInterrupt:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, f"{epoch}.pt")
            raise


def adversarial(real, generator: nn.Module, critic: nn.Module, path):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=200)
    opt = parser.parse_args()
    opt_g, opt_c = optim.Adam(generator.parameters()), optim.Adam(critic.parameters())
    first = opt.epoch
    if os.path.isfile(path):
        state = torch.load(path)
        generator.load_state_dict(state["g"])
        critic.load_state_dict(state["c"])
        opt_g.load_state_dict(state["opt_g"])
        opt_c.load_state_dict(state["opt_c"])
        first = state["epoch"]  # expect: resume-off-by-one
    for epoch in range(first, opt.epochs):
        for x in real:
            opt_c.zero_grad()
            (critic(generator(x).detach()).mean() - critic(x).mean()).backward()
            opt_c.step()
            opt_g.zero_grad()
            (-critic(generator(x)).mean()).backward()
            opt_g.step()
        torch.save({"g": generator.state_dict(), "c": critic.state_dict(), "opt_g": opt_g.state_dict(), "opt_c": opt_c.state_dict(), "epoch": epoch}, f"{epoch}.pt")


def best_before_last_after(model: nn.Module, loader, val, epochs, resume):
    optimizer = optim.AdamW(model.parameters())
    scheduler = CosineAnnealingLR(optimizer, epochs)
    start, best = 0, 0.0
    if resume:
        state = torch.load(resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        start = state["epoch"] + 1
    for epoch in range(start, epochs):
        train_one_epoch(model, loader, optimizer)
        if evaluate(model, val) > best:
            best = evaluate(model, val)
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": epoch}, "best.pt")
        scheduler.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": epoch}, f"{epoch}.pt")


def skipped(model: nn.Module, loader, epochs, resume):
    optimizer = optim.AdamW(model.parameters())
    start = 0
    if resume:
        state = torch.load(resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"]  # expect: resume-off-by-one
    for epoch in range(epochs):
        if epoch < start:
            continue
        train_one_epoch(model, loader, optimizer)
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, f"{epoch}.pt")
