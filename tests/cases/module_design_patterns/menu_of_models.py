"""A dict of whole models, of which the layers of one are used: what it holds is no part of the model."""

import torch
from torch import nn
from torchvision import models


class Classifier(nn.Module):
    def __init__(self, name, classes):
        super().__init__()
        self.choices = {"small": models.resnet18(), "large": models.resnet50()}
        chosen = self.pick(name)
        self.body = nn.Sequential(*list(chosen.children())[:-1])
        self.head = nn.Linear(chosen.fc.in_features, classes)

    def pick(self, name):
        try:
            return self.choices[name]
        except KeyError:
            raise ValueError(name) from None

    def forward(self, x):
        return self.head(torch.flatten(self.body(x), 1))


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.members = {"small": models.resnet18(), "large": models.resnet50()}  # expect: unregistered-modules

    def forward(self, x):
        return sum(each(x) for each in self.members.values())
