"""Steps that are functions: the loop over the batches stands in another file."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Learner:
    def __init__(self, net: nn.Module, lr: float, decay: float):
        self.net, self.decay = net, decay
        self.optimizer = optim.Adam(net.parameters(), lr=lr)
        self.state = None
        self.cut_state = None

    def train_step(self, x, y):
        self.optimizer.zero_grad()
        out = self.net(x)
        loss = F.mse_loss(out, y) + self.decay * out.pow(2).mean()
        loss.backward(retain_graph=True)  # expect: retain-graph-needless
        self.optimizer.step()
        torch.cuda.empty_cache()  # expect: empty-cache-in-loop

    def step_with_state(self, x, y):
        self.optimizer.zero_grad()
        out, self.state = self.net(x, self.state)  # expect: hidden-state-not-detached
        F.mse_loss(out, y).backward()
        self.optimizer.step()

    def step_with_cut_state(self, x, y):
        self.optimizer.zero_grad()
        out, state = self.net(x, self.cut_state)
        self.cut_state = state.detach()
        F.mse_loss(out, y).backward()
        self.optimizer.step()

    def update(self, log_probs, advantages):
        loss = -(log_probs * advantages).mean()
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        self.optimizer.step()


def make_step(net: nn.Module, crit, optimizer: optim.Optimizer):
    def train_one_batch(xb, yb):
        optimizer.zero_grad()
        loss = crit(net(xb), yb)
        loss.backward(retain_graph=True)  # expect: retain-graph-needless
        optimizer.step()
        return loss.item()

    return train_one_batch


def attack(net: nn.Module, image, label, steps: int):
    """An image is trained, the features of another one are made once."""
    noise = torch.zeros_like(image, requires_grad=True)
    wanted = net(image + 0.1)
    optimizer = optim.SGD([noise], lr=0.1)
    for _ in range(steps):
        loss = F.mse_loss(net(image + noise), wanted) + F.cross_entropy(net(noise), label)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
    return noise
