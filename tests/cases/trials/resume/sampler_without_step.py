# command: train.py --epochs 4
# options: --stop-after 14 --resume-args "--resume ckpt.pt"
# expect: resume-differs step
"""Batches in an order that the epoch seeds, and no generator that anything draws from: none is kept."""

import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--resume", default="")
args = parser.parse_args()


def save(path, **state):
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(40, 4), torch.randn(40, 1))
    sampler = DistributedSampler(data, num_replicas=1, rank=0, seed=7)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 1))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    history, started = [], time.time()
    first, skip, global_step = 0, 0, 0
    if args.resume:
        checkpoint = torch.load(args.resume)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        plateau.load_state_dict(checkpoint["plateau"])
        first = checkpoint["epoch"]
        skip = checkpoint["batches"]
    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        running = 0.0
        for i, (x, y) in enumerate(loader):
            if i < skip:
                continue
            out = model(x)
            loss = nn.functional.smooth_l1_loss(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            global_step += 1
            running += loss.item()
            if global_step % 6 == 0:
                save("ckpt.pt", model=model.state_dict(), optimizer=optimizer.state_dict(), plateau=plateau.state_dict(),
                     epoch=epoch, batches=i + 1, global_step=global_step)
        skip = 0
        plateau.step(float(epoch % 2))
        history.append((running, time.time() - started))


main()
