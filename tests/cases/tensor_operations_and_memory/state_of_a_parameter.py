"""A tracker that keeps its own state, known by its name alone."""

import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.cell = nn.LSTMCell(d, d)
        self.out = nn.Linear(d, 4)
        self.hx = self.cx = None

    def reset(self, n):
        self.hx = self.cx = torch.zeros(n, self.cell.hidden_size)

    def forward(self, f):
        self.hx, self.cx = self.cell(f, (self.hx, self.cx))  # expect: hidden-state-not-detached
        return self.out(self.hx)


def train(tracker, videos, opt):
    for video, boxes in videos:
        tracker.reset(video.size(1))
        for frame, box in zip(video, boxes):
            loss = (tracker(frame) - box).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
