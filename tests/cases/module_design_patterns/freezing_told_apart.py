"""requires_grad that is an option of a module, or set on what was asked to be a parameter."""

from torch import nn


class Bank(nn.Module):
    def __init__(self, requires_grad=False):
        super().__init__()
        self.requires_grad = requires_grad
        self.filters = nn.Linear(8, 8)
        for each in self.filters.parameters():
            each.requires_grad_(requires_grad)


def lock(groups: list[nn.Module]):
    for each in groups:
        if isinstance(each, nn.Parameter):
            each.requires_grad = False
        else:
            for inner in each.parameters():
                inner.requires_grad = False
