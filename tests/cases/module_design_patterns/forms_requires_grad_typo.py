"""Forms of requires-grad-typo and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def freeze2(model):
    for name, param in model.named_parameters():
        if "encoder" in name:
            param.require_grad = False  # expect: requires-grad-typo


def freeze_right2(model):
    for name, param in model.named_parameters():
        if "encoder" in name:
            param.requires_grad = False


class Probe3(nn.Module):
    def __init__(self, backbone: nn.Module, n):
        super().__init__()
        self.backbone = backbone
        self.backbone.requires_grad = False  # expect: requires-grad-typo
        self.head = nn.Linear(512, n)
    def forward(self, x):
        return self.head(self.backbone(x))


class ProbeRight3(nn.Module):
    def __init__(self, backbone: nn.Module, n):
        super().__init__()
        self.backbone = backbone
        self.backbone.requires_grad_(False)
        self.head = nn.Linear(512, n)
    def forward(self, x):
        return self.head(self.backbone(x))


def freeze_bn5(net):
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
            m.requires_grad = False  # expect: requires-grad-typo


def freeze_bn_right5(net):
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
            m.requires_grad_(False)


class Distiller6:
    def __init__(self, teacher, student):
        self.teacher, self.student = teacher, student
        self.teacher.eval()
        for p in self.teacher.parameters():
            p.requires_grad_ = False  # expect: requires-grad-typo
    def loss(self, x):
        return F.mse_loss(self.student(x), self.teacher(x))


class DistillerRight6:
    def __init__(self, teacher, student):
        self.teacher, self.student = teacher, student
        self.teacher.eval()
        for p in self.teacher.parameters():
            p.requires_grad_(False)
    def loss(self, x):
        return F.mse_loss(self.student(x), self.teacher(x))


def set_grad8(nets, flag):
    if not isinstance(nets, list):
        nets = [nets]
    for net in nets:
        if net is not None:
            net.requires_grad = flag  # expect: requires-grad-typo
def train_step8(G, D, x, opt_g, opt_d):
    set_grad8([D], True)
    opt_d.zero_grad()
    D(G(x).detach()).mean().backward()
    opt_d.step()
    set_grad8([D], False)
    opt_g.zero_grad()
    (-D(G(x)).mean()).backward()
    opt_g.step()


def set_grad_right8(nets, flag):
    if not isinstance(nets, list):
        nets = [nets]
    for net in nets:
        if net is not None:
            net.requires_grad_(flag)
def train_step_right8(G, D, x, opt_g, opt_d):
    set_grad_right8([D], True)
    opt_d.zero_grad()
    D(G(x).detach()).mean().backward()
    opt_d.step()
    set_grad_right8([D], False)
    opt_g.zero_grad()
    (-D(G(x)).mean()).backward()
    opt_g.step()


class Detector10(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head
    def freeze_backbone(self):
        self.backbone.requires_grad = False  # expect: requires-grad-typo
    def forward(self, x):
        return self.head(self.backbone(x))


class DetectorRight10(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head
    def freeze_backbone(self):
        self.backbone.requires_grad_(False)
    def forward(self, x):
        return self.head(self.backbone(x))


def main11(cfg):
    teacher = build_teacher11(cfg)
    for p in teacher.parameters():
        p.requires_gradient = False  # expect: requires-grad-typo
    return teacher
def build_teacher11(cfg):
    return nn.Linear(cfg.a, cfg.b)


def main_right11(cfg):
    teacher = build_teacher_right11(cfg)
    for p in teacher.parameters():
        p.requires_grad = False
    return teacher
def build_teacher_right11(cfg):
    return nn.Linear(cfg.a, cfg.b)


import torchvision
vgg = torchvision.models.vgg16(weights="IMAGENET1K_V1").features[:16]
vgg.eval()
vgg.requires_grad = False  # expect: requires-grad-typo
def perceptual12(x, y):
    return F.l1_loss(vgg(x), vgg(y))


import torchvision
vgg = torchvision.models.vgg16(weights="IMAGENET1K_V1").features[:16]
vgg.eval()
vgg.requires_grad_(False)
def perceptual_right12(x, y):
    return F.l1_loss(vgg(x), vgg(y))


def unfreeze13(model, epoch):
    if epoch == 5:
        for name, child in model.named_children():
            if name in ("layer3", "layer4"):
                child.requires_grad = True  # expect: requires-grad-typo


def unfreeze_right13(model, epoch):
    if epoch == 5:
        for name, child in model.named_children():
            if name in ("layer3", "layer4"):
                child.requires_grad_(True)


def freeze17(net, upto):
    for i, (name, p) in enumerate(net.named_parameters()):
        p.required_grad = i >= upto  # expect: requires-grad-typo


def freeze_right17(net, upto):
    for i, (name, p) in enumerate(net.named_parameters()):
        p.requires_grad = i >= upto
