#!/usr/bin/env python
"""Keyword spotting.

python train.py --out exp/gru --seed 3
"""

import argparse
import os
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

from data import KeywordDataset, make_loader
from features import LogFilterBank
from model import KeywordSpotter
from synth import KEYWORDS, SAMPLE_RATE

parser = argparse.ArgumentParser(description="keyword spotting on synthetic speech")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", default="exp")
parser.add_argument("--device", default="cpu")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--train-size", type=int, default=320)
parser.add_argument("--val-size", type=int, default=200)
parser.add_argument("--hidden", type=int, default=24)
parser.add_argument("--lr", type=float, default=2e-2)
parser.add_argument("--warmup", type=int, default=8, help="steps in which the learning rate rises")
parser.add_argument("--clip", type=float, default=2.0)
parser.add_argument("--num-workers", type=int, default=0)
parser.add_argument("--resume", action="store_true")


def lr_factor(step: int, warmup: int, total: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    return 1.0 - (step - warmup) / (total - warmup)


def train(model, loader, optimizer, scheduler, device, epoch, clip):
    model.train()
    for i, batch in enumerate(loader):
        waves = batch["waves"].to(device, non_blocking=True)
        labels = batch["labels"].to(device, non_blocking=True)
        loss = F.cross_entropy(model(waves, batch["lengths"]), labels)
        optimizer.zero_grad()
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        scheduler.step()
        if i % 8 == 7:
            print(f"epoch {epoch} batch {i + 1}/{len(loader)} train loss {loss.item():.4f} |g| {grad_norm.item():.2f}")


@torch.no_grad()
def test(model, loader, device):
    model.eval()
    loss_sum, correct = 0.0, 0
    for batch in loader:
        labels = batch["labels"].to(device)
        logits = model(batch["waves"].to(device), batch["lengths"])
        loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
        correct += (logits.argmax(dim=1) == labels).sum().item()
    n = len(loader.dataset)
    return loss_sum / n, correct / n


def save(path, **parts):
    torch.save(parts, path + ".tmp")
    os.replace(path + ".tmp", path)


def main():
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    os.makedirs(args.out, exist_ok=True)

    train_set = KeywordDataset(args.train_size, seed=1)
    val_set = KeywordDataset(args.val_size, seed=2)
    generator = torch.Generator().manual_seed(args.seed)
    pin = device.type == "cuda"
    train_loader = make_loader(train_set, args.batch_size, True, generator, args.num_workers, pin)
    val_loader = make_loader(val_set, 128, False, torch.Generator().manual_seed(0), args.num_workers, pin)

    frontend = LogFilterBank(SAMPLE_RATE)
    frontend.fit(train_set.waves)
    model = KeywordSpotter(frontend, len(KEYWORDS), args.hidden).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    total = args.epochs * len(train_loader)
    scheduler = LambdaLR(optimizer, lambda step: lr_factor(step, args.warmup, total))
    start = 0

    path = os.path.join(args.out, "model.ckpt")
    if args.resume and os.path.exists(path):
        ckpt = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
        scheduler.load_state_dict(ckpt["scheduler"])
        torch.set_rng_state(ckpt["cpu_rng"])
        if device.type == "cuda":
            torch.cuda.set_rng_state(ckpt["cuda_rng"], device)
        generator.set_state(ckpt["loader_rng"])
        start = ckpt["next_epoch"]
        print(f"going on with epoch {start}")

    for epoch in range(start, args.epochs):
        train(model, train_loader, optimizer, scheduler, device, epoch, args.clip)
        loss, accuracy = test(model, val_loader, device)
        print(f"epoch {epoch}: held-out loss {loss:.4f} accuracy {accuracy:.3f}")
        save(
            path,
            model=model.state_dict(),
            optimizer=optimizer.state_dict(),
            scheduler=scheduler.state_dict(),
            cpu_rng=torch.get_rng_state(),
            cuda_rng=torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
            loader_rng=generator.get_state(),
            next_epoch=epoch + 1,
        )

    loss, accuracy = test(model, val_loader, device)
    print(f"val_accuracy: {accuracy:.4f}")
    print(f"val_loss: {loss:.4f}")


if __name__ == "__main__":
    main()
