"""A model that calls its own forward to predict."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.a(x)

    def predict(self, xs):
        return [self.forward(x).data.cpu().numpy() for x in xs]  # expect: eval-builds-graph


if __name__ == "__main__":
    net = Net()
    net.eval()
    net.predict([torch.randn(1, 3, 8, 8)] * 4)
