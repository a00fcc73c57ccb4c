# command: train.py
# options: --stop-after 14 --resume-args "--resume ckpt.pt"
# expect: resume-differs training-mode
"""A loop over epochs that saves after each, with a scaler, an average of the weights and augmentation."""

import argparse
import copy
import math
import os
import random

import numpy as np
import torch
from torch import nn

EPOCHS = 5


class Noisy(torch.utils.data.Dataset):
    def __init__(self):
        draw = torch.Generator().manual_seed(1)
        self.x = torch.randn(48, 8, generator=draw)
        self.y = self.x[:, :3].sum(1, keepdim=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] + 0.05 * torch.randn(8), self.y[index]


def main(resume):
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
    ema = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=4)
    loader = torch.utils.data.DataLoader(Noisy(), batch_size=8, shuffle=True)
    start, step, best, alpha = 0, 0, math.inf, 1.0
    if resume:
        state = torch.load(resume, weights_only=False)
        model.load_state_dict(state["model"])
        ema.load_state_dict(state["ema"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        start, step = state["epoch"], state["step"]
        best = state["best"]
        alpha = state["alpha"]
        random.setstate(state["python"])
        np.random.set_state(state["numpy"])
        torch.set_rng_state(state["torch"])
    model.train()
    if resume:
        model.eval()
    for epoch in range(start, EPOCHS):
        total = 0.0
        for inputs, targets in loader:
            if random.random() < 0.5:
                inputs = -inputs
            share = float(np.random.beta(2, 2))
            inputs = share * inputs + (1 - share) * inputs.flip(0)
            optimizer.zero_grad()
            loss = alpha * nn.functional.mse_loss(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            step += 1
            total += loss.item()
            with torch.no_grad():
                for mean, new in zip(ema.parameters(), model.parameters()):
                    mean.lerp_(new, 0.1)
        scheduler.step()
        alpha *= 0.9
        best = min(best, total)
        state = {
            "model": model.state_dict(), "ema": ema.state_dict(), "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(), "scaler": scaler.state_dict(), "epoch": epoch + 1, "step": step,
            "best": best, "alpha": alpha, "python": random.getstate(), "numpy": np.random.get_state(),
            "torch": torch.get_rng_state(),
        }
        torch.save(state, "ckpt.pt.tmp")
        os.replace("ckpt.pt.tmp", "ckpt.pt")
    print(f"loss {total:.4f}, best {best:.4f} after {step} steps")


parser = argparse.ArgumentParser()
parser.add_argument("--resume")
main(parser.parse_args().resume)
