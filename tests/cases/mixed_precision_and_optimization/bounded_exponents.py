"""Exponents, and arguments of sigmoids, that cannot be large: what is composed of them is stable as it is."""

import torch
import torch.nn.functional as F
from torch import nn


def cosine(a, b):
    a = F.normalize(a, p=2, dim=-1)
    b = F.normalize(b, p=2, dim=-1)
    return torch.sum(torch.multiply(a, b), 1)


def infomax(nodes, summary):
    good = cosine(nodes, summary)
    bad = cosine(nodes[torch.randperm(len(nodes))], summary)
    return torch.mean(-torch.log(torch.sigmoid(good - bad)))  # between -2 and 2


def ranking(user, wanted, other):
    good, bad = (user * wanted).sum(1), (user * other).sum(1)
    return torch.mean(-torch.log(torch.sigmoid(good - bad)))  # expect: unstable-composition


class Walks(nn.Module):
    def __init__(self, size, wide):
        super().__init__()
        self.table = nn.Embedding(size, wide)
        self.sigmoids = torch.log(torch.sigmoid(torch.arange(-6.01, 6.01, 0.01)))

    def forward(self, ids):
        return self.table(ids)


def masked_contrast(features, labels, t=0.07):
    features = F.normalize(features, dim=-1)
    similar = torch.matmul(features, features.T) / t
    others = 1 - torch.eye(len(features), device=features.device)
    top, _ = torch.max(similar * others, dim=1, keepdim=True)
    rest = similar - top.detach()
    powers = torch.exp(rest * others) * others
    logs = rest - torch.log(powers.sum(1, keepdim=True))
    same = torch.eq(labels.view(-1, 1), labels.view(1, -1)).float() * others
    return -((same * logs).sum(1) / same.sum(1)).mean()


def shifted_by_a_constant(query, queue, positive, t):
    similar = torch.div(torch.matmul(query, queue.T), t)
    top, _ = torch.max(similar, dim=1, keepdim=True)
    logits = similar - top.detach()
    powers = torch.exp(logits + 1e-12)
    return -(positive * (logits - torch.log(powers.sum(1, keepdim=True)))).sum(1).mean()


def never_shifted(query, queue, positive, t):
    logits = torch.div(torch.matmul(query, queue.T), t)
    powers = torch.exp(logits)
    return -(positive * (logits - torch.log(powers.sum(1, keepdim=True)))).mean()  # expect: unstable-composition


def window(sigma, device):
    half = max(1, round(3 * sigma))
    x = torch.arange(-half, half + 1, device=device)
    w = torch.exp(-(x * x) / (2.0 * sigma * sigma))
    return w / w.sum()


def attention_in_tiles(q, keys, values, width):
    total = torch.zeros(q.shape[:-1])
    top = torch.full(q.shape[:-1], float("-inf"))
    for k in torch.chunk(keys, width, dim=-2):
        scores = q @ k.transpose(-2, -1)
        before, highest = top, torch.max(scores, dim=-1).values
        top = torch.maximum(before, highest)
        powers = torch.exp(scores - top.unsqueeze(-1))
        total = torch.exp(before - top) * total + torch.sum(powers, dim=-1)
    return top + torch.log(total)
