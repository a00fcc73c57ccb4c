"""Hooks that are passed by, and hooks that pile up."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.autograd import Function


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        self.fc.register_forward_hook(lambda module, args, out: print(out.norm()))  # expect: hook-handle-dropped
        return self.head.forward(self.fc(x))  # expect: forward-called-directly

    def predict(self, x):
        return self.forward(x)


def train(loader, epochs):
    model = Encoder(8)
    model = model.to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    activations = []

    def keep(module, args, output):
        activations.append(output.detach())

    for epoch in range(epochs):
        model.fc.register_forward_hook(keep)  # expect: hook-handle-dropped
        handle = model.head.register_forward_pre_hook(keep)  # expect: hook-handle-dropped
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model.forward(x), y)  # expect: forward-called-directly
            loss.backward()
            optimizer.step()


def features(model, image, out):
    model.layer4.register_forward_hook(lambda module, args, output: out.append(output))  # expect: hook-handle-dropped
    with torch.no_grad():
        return model(image)


def extract(images):
    net = torchvision.models.resnet18()
    out = []
    for image in images:
        features(net, image, out)
    return out


def evaluate(model: nn.Module, x):
    return model.forward(x)  # expect: forward-called-directly


def once(images):
    net = torchvision.models.resnet18()
    out = []
    net.layer4.register_forward_hook(lambda module, args, output: out.append(output))
    for layer in net.children():
        layer.register_forward_hook(lambda module, args, output: print(output.shape))
    for name, layer in net.named_modules():
        layer.register_full_backward_hook(lambda module, before, after: print(after[0].norm()))
    for index in range(4):
        getattr(net, f"layer{index}").register_forward_hook(print)
    for image in images:
        fresh = Encoder(8)
        fresh.fc.register_forward_hook(print)
        net(image)
    for step, image in enumerate(images):
        if step == 0:
            net.fc.register_forward_hook(print)
    return out


def copied(old, new: nn.Module):
    for hook in old._forward_hooks.values():
        new.register_forward_hook(hook)


class Child(Encoder):
    def forward(self, x):
        return super().forward(x) + Encoder.forward(self, x)


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Wrapper(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args):
        return self.module.forward(*args)


class Own:
    def forward(self, x):
        return x

    def run(self, x):
        return self.forward(x)


class Timed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def __call__(self, x):
        return self.forward(x)


def timed(x):
    model = Timed(4)
    return model.forward(x), Own().forward(x), Square.forward(None, x)  # expect: function-called-directly
