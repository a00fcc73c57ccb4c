"""Steps that a comprehension repeats, closures of LBFGS, and loops that choose elements by a condition."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def fitted_picture(features: nn.Module, content):
    canvas = content.clone().requires_grad_(True)
    lbfgs = torch.optim.LBFGS([canvas], max_iter=20)
    with torch.no_grad():
        wanted = features(content)

    def closure():
        lbfgs.zero_grad()
        loss = F.mse_loss(features(canvas), wanted)
        loss.backward(retain_graph=True)  # expect: retain-graph-needless
        return loss

    for _ in range(20):
        lbfgs.step(closure)
    return canvas


def fitted_through_a_shared_part(features: nn.Module, base):
    canvas = base.clone().requires_grad_(True)
    adam = torch.optim.Adam([canvas])
    sketch = features(base)
    for _ in range(20):
        loss = F.mse_loss(features(canvas), sketch)
        adam.zero_grad()
        loss.backward(retain_graph=True)
        adam.step()


class Reader:
    def __init__(self, cell: nn.Module, opt):
        self.cell = cell
        self.opt = torch.optim.Adam(cell.parameters())
        self.state = None

    def step(self, x, y):
        out, state = self.cell(x, self.state)  # expect: hidden-state-not-detached
        loss = F.mse_loss(out, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.state = state
        return loss.item()

    def epoch(self, windows):
        self.state = None
        return sum([self.step(x, y) for x, y in windows])


def peaks(series, high):
    weights = torch.ones_like(series)
    for b in range(series.size(0)):  # expect: python-loop-over-tensor
        for t in range(series.size(1)):
            if abs(series[b, t]) > high:
                weights[b, t] = 4.0
    return weights


def chosen(series):
    out = torch.zeros_like(series)
    for i in range(series.size(0)):  # expect: python-loop-over-tensor
        if series[i] > 0:
            out[i] = series[i]
        else:
            out[i] = 0.1 * series[i]
    return out


def running(series):
    out = torch.zeros_like(series)
    for i in range(1, series.size(0)):
        if out[i - 1] > 0:
            out[i] = series[i]
    return out


def collate(rows):
    users, stars = (torch.stack(column) for column in zip(*rows))
    target = stars.float() / 5
    target = torch.tensor(target)  # expect: tensor-of-tensor
    return users, target


def collate_numbers(rows):
    users, stars = (list(column) for column in zip(*rows))
    return torch.tensor(users), torch.tensor(stars)
