"""Trains a recurrent model on one long sequence, window by window, and carries the state along."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, features=4, hidden=16, tags=3):
        super().__init__()
        self.cell = nn.GRU(features, hidden, batch_first=True)
        self.head = nn.Linear(hidden, tags)

    def forward(self, inputs, state=None):
        output, state = self.cell(inputs, state)
        return self.head(output), state


def train(model, windows, lr=0.05):
    """One pass over the windows of one sequence and one update after it; gives the loss of each window."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    optimizer.zero_grad()
    state, losses = None, []
    for inputs, tags in windows:
        logits, state = model(inputs, state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten()) / len(windows)
        loss.backward(retain_graph=True)
        losses.append(loss.item())
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return losses, state
