"""Loops that do in pieces what one operation does at once, and loops that must go step by step."""

import math

import numpy as np
import torch
from torch import nn


@torch.inference_mode()
def embed(model: nn.Module, loader, device: str):
    model.eval()
    features = torch.empty(0, 512, device=device)
    labels = None
    for index, (inputs, targets) in enumerate(loader):
        features = torch.cat([features, model(inputs.to(device))], dim=0)  # expect: grown-by-cat
        if labels is None:
            labels = targets
        else:
            labels = torch.cat((labels, targets)).cpu()  # expect: grown-by-cat
        if index > 100:
            break
    return features, labels


@torch.no_grad()
def bank(encoder: nn.Module, train_dl):
    encoder.eval()
    rows = None
    for x, _ in train_dl:
        z = encoder(x)
        rows = z if rows is None else torch.cat([rows, z])  # expect: grown-by-cat
    return rows


def indices(rank: int, dims: int):
    whole = torch.zeros(1, rank)
    for _ in range(dims - 1):
        whole = torch.cat((whole, torch.zeros(1, rank)))
    return whole


def noise(count: int):
    rows = torch.zeros(0, 8)
    for _ in range(count):
        rows = torch.vstack((rows, torch.randn(1, 8)))  # expect: grown-by-cat
    return rows


@torch.inference_mode()
def embed_at_once(model: nn.Module, loader):
    features = []
    for inputs, _ in loader:
        features.append(model(inputs))
    return torch.cat(features)


@torch.no_grad()
def generate(model: nn.Module, text, count: int):
    for _ in range(count):
        logits = model(text)
        text = torch.cat([text, logits[:, -1:].argmax(-1)], dim=1)
    return text


def attend(steps, keys, values):
    cache_k = torch.zeros(0, 64)
    for k, _ in zip(keys, values):
        cache_k = torch.cat([cache_k, k])
    return cache_k, steps


class Dense(nn.Module):
    def __init__(self, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(8 + i, 1, 3, padding=1) for i in range(layers))

    def forward(self, x):
        out = x
        for i in range(len(self.layers)):
            out = torch.cat([out, self.layers[i](x)], dim=1)
        return out


def three_channels(image: torch.Tensor):
    out = image[:1]
    for channel in range(3):
        out = torch.cat([out, image[channel : channel + 1]])
    return out


def window(stream, size: int):
    recent = torch.zeros(0)
    for _ in range(10_000):
        recent = torch.cat([recent, next(stream)])
        recent = recent[-size:]
    return recent


def squares(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in range(x.size(0)):  # expect: python-loop-over-tensor
        for j in range(x.size(1)):
            out[i, j] = x[i, j] ** 2 + 1
    return out


def doubled(x: torch.Tensor):
    rows, columns = x.shape
    out = torch.zeros(rows, columns)
    for i in range(rows):  # expect: python-loop-over-tensor
        for j in range(columns):
            out[i][j] = x[i][j] * 2.0
    return out


def squared_error(predictions: torch.Tensor, targets: torch.Tensor):
    total = 0.0
    for one, other in zip(predictions, targets):  # expect: python-loop-over-tensor
        total += (one - other) ** 2
    return total / len(predictions)


def dot(a: torch.Tensor, b: torch.Tensor):
    total = 0.0
    for i in range(len(a)):  # expect: python-loop-over-tensor
        total += a[i] * b[i]
    return total


def scaled(scores, temperature: float):
    out = torch.empty(scores.size(0))
    for i in range(scores.size(0)):  # expect: python-loop-over-tensor
        out[i] = torch.exp(scores[i] / temperature)
    return out


def running(x: torch.Tensor, decay: float):
    out = torch.zeros_like(x)
    for t in range(1, x.size(0)):
        out[t] = decay * out[t - 1] + x[t]
    return out


def cumulated(x: torch.Tensor):
    out = x.clone()
    level = torch.zeros(())
    for t in range(x.size(0)):
        level = 0.9 * level + x[t]
        out[t] = level
    return out


def per_sample(model: nn.Module, x: torch.Tensor):
    out = torch.zeros(x.size(0))
    for i in range(x.size(0)):
        out[i] = model(x[i : i + 1]).sum()
    return out


def of_a_list(values: list[float]):
    total = 0.0
    for i in range(len(values)):
        total += values[i] * math.pi
    return total


def of_an_array(a, b):
    a = np.asarray(a)
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


def names(x: torch.Tensor, log):
    for i in range(x.size(0)):
        log[i] = f"{i}: {x[i]}"


def by_number(x: torch.Tensor):
    table = {}
    for i in range(len(x)):
        table[i] = x[i] * 2
    return table


def long_enough(audio: torch.Tensor, code: torch.Tensor, size: int):
    while audio.shape[0] < size:
        audio = torch.hstack([audio, audio])
        code = torch.hstack([code, code])
    return audio, code
