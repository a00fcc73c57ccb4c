"""Freezing that works, and freezing that does nothing."""

import torch
import torch.nn as nn
import torchvision
from torchvision import models
from torchvision.models import resnet18


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(1))
        self.scale.requires_grad = False


class Probe(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.encoder = Encoder(width)
        self.encoder.requires_grad = False  # expect: requires-grad-typo
        self.head = nn.Linear(width, classes)
        self.head.weight.requires_grad = True
        self.trunk = models.resnet18()
        for param in self.trunk.parameters():
            param.require_grad = False  # expect: requires-grad-typo

    def freeze(self):
        self.requires_grad = False  # expect: requires-grad-typo


def finetune(classes):
    model = torchvision.models.resnet50(weights="DEFAULT")
    for layer in model.children():
        layer.requires_grad = False  # expect: requires-grad-typo
    for name, part in model.named_modules():
        if "bn" in name:
            part.requires_grad = False  # expect: requires-grad-typo
    for p in model.layer4.parameters():
        p.requires_grad_ = False  # expect: requires-grad-typo
    model.layer1.requires_grad = False  # expect: requires-grad-typo
    model.fc = nn.Linear(2048, classes)
    model.fc.requires_grad = True  # expect: requires-grad-typo
    for index, child in enumerate(list(model.children())[:6]):
        child.requires_grad = False  # expect: requires-grad-typo
    for index, block in enumerate(model.features):
        block.requires_grad = index > 3  # expect: requires-grad-typo
    return model


def freeze_trunk():
    vgg = models.vgg16()
    for block in vgg.features:
        block.requires_grad = False  # expect: requires-grad-typo
    probe = Probe(8, 2)
    probe.encoder.requires_grad = False  # expect: requires-grad-typo
    probe.encoder.scale.requires_grad = False
    return vgg, probe


class Adapted(nn.Module):
    def __init__(self, linear, width):
        super().__init__()
        self.pretrained = linear
        self.pretrained.requires_grad = False  # expect: requires-grad-typo
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        for block in self.blocks[:2]:
            block.requires_grad = False  # expect: requires-grad-typo
        self.gains = nn.ParameterList(nn.Parameter(torch.ones(1)) for _ in range(4))
        for gain in self.gains:
            gain.requires_grad = False

    def forward(self, x):
        return self.pretrained(x)


class Tied(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
        self.gain = nn.Parameter(torch.ones(1))
        self.a.requires_grad = self.b.requires_grad = False  # expect: requires-grad-typo
        for part in (self.a, self.b):
            part.requires_grad = False  # expect: requires-grad-typo
        for part in (self.gain, self.a.weight):
            part.requires_grad = False


def freeze_norms(module):
    if isinstance(module, nn.BatchNorm2d):
        module.requires_grad = False  # expect: requires-grad-typo


def freeze_weights(value):
    value.requires_grad = False


def freeze_all(model):
    model.apply(freeze_norms)
    for weight in model.parameters():
        freeze_weights(weight)


def freeze(model: nn.Module):
    model.requires_grad = False  # expect: requires-grad-typo


def right(classes, image):
    net = resnet18()
    for param in net.parameters():
        param.requires_grad = False
    for name, param in net.named_parameters():
        param.requires_grad = "fc" in name
    net.requires_grad_(False)
    net.fc = nn.Linear(512, classes)
    net.fc.weight.requires_grad = True
    image.requires_grad = True
    noise = torch.zeros(3)
    noise.requires_grad = True
    for layer in net.children():
        for weight in layer.parameters():
            weight.requires_grad = False
    for name, weight in net.fc.named_parameters():
        weight.requires_grad = True
    return net, image, noise


class Adapter(nn.Module):
    """Keeps a flag of its own, and reads it."""

    def __init__(self, width, frozen):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.token = nn.Parameter(torch.zeros(width))
        self.require_gradient = True

    def forward(self, x):
        return self.fc(x) if self.require_gradient else self.fc(x).detach()


def prompts(model, width):
    model.token.requires_grad = False
    model.weight.requires_grad = False
    extra = nn.Parameter(torch.zeros(width))
    extra.requires_grad = False
    return extra
