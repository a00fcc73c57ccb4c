"""A small convolutional network with a residual stage."""

import torch.nn.functional as F
from torch import nn


class Stage(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outside)

    def forward(self, maps):
        return F.relu(self.norm(self.conv(maps)))


class ShapeNet(nn.Module):
    def __init__(self, width=16, classes=4):
        super().__init__()
        self.stem = Stage(1, width)
        self.body = nn.Sequential(Stage(width, width), nn.MaxPool2d(2), Stage(width, 2 * width))
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, images):
        maps = self.body(self.stem(images))
        pooled = maps.mean(dim=(2, 3))
        return self.head(self.drop(pooled))
