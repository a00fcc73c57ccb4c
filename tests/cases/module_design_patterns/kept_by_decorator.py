"""A decorator keeps the layer that a method makes."""

"""A projector that a decorator keeps on the module: the first pass makes it, later passes get the kept one."""
from torch import nn


def kept(name):
    def outer(make):
        def wrapper(self, *args):
            found = getattr(self, name)
            if found is None:
                found = make(self, *args)
                setattr(self, name, found)
            return found
        return wrapper
    return outer


class Encoder(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.projector = None

    @kept("projector")
    def get_projector(self, hidden):
        return nn.Linear(hidden.shape[1], 4).to(hidden)

    def forward(self, x):
        hidden = self.net(x)
        return self.get_projector(hidden)(hidden)


class Model(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.encoder = Encoder(net)

    def forward(self, x):
        one = self.encoder(x)
        two = self.encoder(x)
        return (one - two).pow(2).mean()
