"""Callbacks that run after every batch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def after_batch(self, loop): ...

    def after_epoch(self, loop): ...


class MemoryCallback(Callback):
    def __init__(self):
        self.peaks = []

    def after_batch(self, loop):
        torch.cuda.empty_cache()  # expect: empty-cache-in-loop

    def after_epoch(self, loop):
        if torch.cuda.is_available():
            self.peaks.append(torch.cuda.max_memory_allocated() / 2**20)
            torch.cuda.reset_peak_memory_stats()


class Printer(Callback):
    def after_epoch(self, loop):
        print(f"epoch {loop.epoch} dice loss {loop.average:.4f}")


def dice_loss(logits, mask, eps=1.0):
    p = torch.sigmoid(logits).flatten(1)
    m = mask.flatten(1)
    return (1 - (2 * (p * m).sum(1) + eps) / (p.sum(1) + m.sum(1) + eps)).mean()


class VolumeLoop:
    def __init__(self, net, data, callbacks, lr=1e-3):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = net.to(self.device)
        self.data = data
        self.callbacks = callbacks
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)
        self.epoch = 0
        self.average = float("nan")

    def emit(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    def batch(self, volume, mask):
        volume, mask = volume.to(self.device), mask.to(self.device)
        self.opt.zero_grad()
        logits = self.net(volume)
        loss = dice_loss(logits, mask) + F.binary_cross_entropy_with_logits(logits, mask)
        loss.backward()
        self.opt.step()
        return loss.detach()

    def run(self, epochs):
        for self.epoch in range(epochs):
            self.net.train()
            acc = torch.zeros((), device=self.device)
            for volume, mask in self.data:
                acc += self.batch(volume, mask)
                self.emit("after_batch")
            self.average = acc.item() / len(self.data)
            self.emit("after_epoch")


if __name__ == "__main__":
    torch.manual_seed(0)
    unet = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.InstanceNorm3d(16), nn.LeakyReLU(), nn.Conv3d(16, 1, 1))
    ds = TensorDataset(torch.randn(16, 1, 24, 24, 24), (torch.rand(16, 1, 24, 24, 24) > 0.8).float())
    VolumeLoop(unet, DataLoader(ds, batch_size=2, shuffle=True), [MemoryCallback(), Printer()]).run(2)
