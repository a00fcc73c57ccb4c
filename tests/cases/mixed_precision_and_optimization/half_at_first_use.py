"""Networks that are made at first use: a float16 teacher, a float16 export, and a float16 student."""

import functools
import torch
from torch import nn
import torchvision


class D:
    @functools.cached_property
    def teacher(self):
        t = torchvision.models.resnet50().half().cuda()
        return t.eval().requires_grad_(False)

    @functools.cached_property
    def student(self):
        return torchvision.models.resnet18().cuda()

    @property
    def exported(self):
        return self.student.half()

    @functools.cached_property
    def opt(self):
        return torch.optim.SGD(self.student.parameters(), lr=0.1)

    def run(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            with torch.no_grad():
                soft = self.teacher(x.half()).float()
            loss = nn.functional.mse_loss(self.student(x), soft)
            loss.backward()
            self.opt.step()


class Student:
    def __init__(self, loader):
        self.loader = loader

    @functools.cached_property
    def teacher(self):
        net = torchvision.models.resnet50().half().cuda()
        return net.eval().requires_grad_(False)

    @functools.cached_property
    def net(self):
        net = torchvision.models.resnet18()
        return net.half().cuda()  # expect: half-model-trained

    @functools.cached_property
    def opt(self):
        return torch.optim.SGD(self.net.parameters(), lr=0.1)

    def run(self):
        for x, _ in self.loader:
            self.opt.zero_grad()
            with torch.no_grad():
                soft = self.teacher(x.half()).float()
            loss = nn.functional.mse_loss(self.net(x.half()).float(), soft)
            loss.backward()
            self.opt.step()
