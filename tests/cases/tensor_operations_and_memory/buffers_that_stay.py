"""Attributes that are moved without being given the result."""

import torch


class Buffer:
    def __init__(self, n, d):
        self.obs = torch.zeros(n, d)
        self.adv = torch.zeros(n)

    def to(self, device):
        self.obs.to(device)  # expect: result-dropped
        self.adv.to(device)  # expect: result-dropped
        return self

    def normalised(self):
        return (self.adv - self.adv.mean()) / self.adv.std()
