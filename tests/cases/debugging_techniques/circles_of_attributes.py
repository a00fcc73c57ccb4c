"""Attributes that are given to each other are no NaN, and end."""

import torch


class One:
    def link(self, other):
        self.a = other.b
        self.b = other.a

    def asks(self):
        nan = torch.nan
        return self.a == 1 or self.b is nan
