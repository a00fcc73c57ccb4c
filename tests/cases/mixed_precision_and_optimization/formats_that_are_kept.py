"""Small constants beside values that stay float16 through functions, numbers and settings; old names as values."""

import functools

import torch

mixed = functools.partial(torch.cuda.amp.autocast, dtype=torch.bfloat16)  # expect: amp-api-deprecated
cast = torch.cuda.amp.autocast  # expect: amp-api-deprecated
try:
    context = torch.amp.autocast
except AttributeError:
    context = torch.cuda.amp.autocast


def likelihood(logits, y):
    p = torch.softmax(logits.half(), dim=-1)
    return -torch.log(p[torch.arange(len(y)), y] + 1e-10).mean()  # expect: eps-vanishes


def likelihood_in_float32(logits, y):
    p = torch.softmax(logits.half(), dim=-1, dtype=torch.float32)
    return (p[torch.arange(len(y)), y] + 1e-10).mean()


def adam(w, g, m, v, lr, b1=0.9, b2=0.999):
    g = g.half()
    m = m.half() * b1 + g * (1 - b1)
    v = v.half() * b2 + g * g * (1 - b2)
    return w - lr * m / (v.sqrt() + 1e-8)  # expect: eps-vanishes


def with_float32_state(w, g, m, v, lr, b2=0.999):
    v = v * b2 + g.half() * g.half() * (1 - b2)
    return w - lr * m / (v.sqrt() + 1e-8)


def contrast(sim, eye, positive):
    total = torch.exp(sim).masked_fill(eye, 0).sum(dim=1)
    return -torch.log(torch.exp(positive) / total).mean()  # expect: unstable-composition


CONTEXTS = {"half": torch.cuda.amp.autocast, "none": None}  # expect: amp-api-deprecated
