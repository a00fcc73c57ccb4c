"""A head on a frozen backbone that was built without its weights."""

import torch
from torch import nn

torch.manual_seed(0)


def block(inside, outside):
    conv = nn.Conv2d(inside, outside, 3, stride=2, padding=1, bias=False)  # expect: frozen-at-random module stem.0
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outside), nn.ReLU())


class Network(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = block(3, 16)
        self.layers = nn.Sequential(block(16, 32), block(32, 32), block(32, 64))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        return self.fc(self.pool(self.layers(self.stem(x))).flatten(1))


model = Network()
for parameter in model.parameters():
    parameter.requires_grad = False
model.fc = nn.Linear(64, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _ in range(40):
    y = torch.randint(4, (16,))
    x = torch.randn(16, 3, 16, 16) + y[:, None, None, None]
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
