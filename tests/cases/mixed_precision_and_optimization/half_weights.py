"""Models that are trained in float16 weights, and models that are only used in them."""

import copy

import torch
import torch.nn.functional as F
from torch import nn, optim
from torchvision import models


def pure_half(loader, epochs):
    net = models.resnet50(weights=None).cuda().half()  # expect: half-model-trained
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.float()
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        for image, label in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(image.cuda().half()), label.cuda())
            loss.backward()
            optimizer.step()


class Trainer:
    def __init__(self, model: nn.Module, lr: float, fp16: bool):
        self.model = model.cuda()
        if fp16:
            self.model.half()  # expect: half-model-trained
        self.optimizer = optim.AdamW([{"params": self.model.parameters(), "lr": lr}])

    def train(self, loader):
        self.model.train()
        for batch in loader:
            self.optimizer.zero_grad()
            loss = self.model(batch["input"].half()).mean()
            loss.backward()
            self.optimizer.step()


def with_a_scaler(model: nn.Module, loader):
    model = model.to("cuda", dtype=torch.float16)  # expect: half-model-trained
    optimizer = optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


# Look-alikes


def distil(student: nn.Module, teacher: nn.Module, loader):
    teacher = teacher.half().eval()
    optimizer = optim.Adam(student.parameters())
    for x, _ in loader:
        with torch.no_grad():
            target = teacher(x.half()).float()
        optimizer.zero_grad()
        F.mse_loss(student(x), target).backward()
        optimizer.step()


def evaluated_in_half(model: nn.Module, train, test):
    optimizer = optim.Adam(model.parameters())
    for x, y in train:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.half().eval()
    with torch.inference_mode():
        return [model(x.half()).argmax(1) for x, _ in test]


def saved_in_half(model: nn.Module, loader, path):
    optimizer = optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        torch.save(copy.deepcopy(model).half().state_dict(), path)


def inputs_in_half(model: nn.Module, loader):
    optimizer = optim.Adam(model.parameters())
    for x, y in loader:
        x = x.half()
        optimizer.zero_grad()
        F.cross_entropy(model(x.float()), y).backward()
        optimizer.step()


def in_bfloat16(model: nn.Module, loader):
    model = model.to(torch.bfloat16)
    optimizer = optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def export(model: nn.Module, example):
    model.half()
    return torch.jit.trace(model, example.half())
