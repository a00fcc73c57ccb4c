"""float16 without a scaler, bfloat16 with one; and look-alikes."""

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn, optim

from mylib.amp import train_step_with_amp

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def unscaled(model: nn.Module, loader, epochs):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            with torch.autocast(device_type=device.type, dtype=torch.float16):
                out = model(x)
                loss = F.cross_entropy(out, y)
            loss.backward()  # expect: scaler-missing
            optimizer.step()


class Finetuner:
    def __init__(self, net: nn.Module, weight=0.1):
        self.net, self.weight = net, weight
        self.optim = optim.AdamW(net.parameters(), lr=1e-4)

    def losses(self, image, mask):
        with torch.amp.autocast("cuda"):
            logits, auxiliary = self.net(image)
            main = F.cross_entropy(logits, mask)
            extra = F.cross_entropy(auxiliary, mask)
        return main, extra

    def fit(self, loader):
        self.net.train()
        for image, mask in loader:
            main, extra = self.losses(image.cuda(), mask.cuda())
            total = main + self.weight * extra
            self.optim.zero_grad()
            total.backward()  # expect: scaler-missing
            self.optim.step()


# Look-alikes


def in_bfloat16(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def teacher_only(student: nn.Module, teacher: nn.Module, loader, optimizer: optim.Optimizer):
    for x, _ in loader:
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
            target = teacher(x)
        optimizer.zero_grad()
        loss = F.mse_loss(student(x), target.float())
        loss.backward()
        optimizer.step()


def format_unknown(model: nn.Module, loader, optimizer: optim.Optimizer, config):
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[config.precision]
    context = nullcontext() if config.device == "cpu" else torch.autocast(config.device, dtype=dtype)
    for x, y in loader:
        optimizer.zero_grad()
        with context:
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def best_format(model: nn.Module, loader, optimizer: optim.Optimizer):
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def on_the_cpu(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu"):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def switched_off(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=False):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def validated_in_float16(model: nn.Module, train, valid, optimizer: optim.Optimizer):
    for x, y in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    with torch.inference_mode(), torch.autocast("cuda"):
        for x, y in valid:
            loss = F.cross_entropy(model(x), y)
            print(loss.item())


def done_elsewhere(model: nn.Module, loader, optimizer: optim.Optimizer):
    for batch in loader:
        with torch.autocast("cuda"):
            loss = model(batch)
        loss.backward()
        train_step_with_amp(loss, optimizer)
