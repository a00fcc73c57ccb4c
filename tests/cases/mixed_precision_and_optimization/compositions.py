"""Compositions that overflow or lose digits, and their sound relatives."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def contrastive_loss(embeddings: torch.Tensor, temperature: float = 0.07) -> torch.Tensor:
    embeddings = F.normalize(embeddings, dim=-1)
    similarity = torch.matmul(embeddings, embeddings.T) / temperature
    exp_sim = torch.exp(similarity)
    sum_exp = exp_sim.sum(dim=-1, keepdim=True)
    probs = exp_sim / sum_exp  # of cosines: at most e^14
    return -torch.log(probs.diagonal()).mean()


def info_nce(query, key, queue, t):
    pos = torch.exp((query * key).sum(-1) / t)
    neg = torch.exp(query @ queue / t).sum(-1)
    return -torch.log(pos / (pos + neg)).mean()  # expect: unstable-composition


class Policy(nn.Module):
    def __init__(self, width, actions):
        super().__init__()
        self.body = nn.Linear(width, actions)
        self.soft = nn.Softmax(dim=-1)

    def forward(self, state, action):
        logits = self.body(state)
        probs = F.softmax(logits, dim=-1)
        chosen = torch.log(probs.gather(1, action[:, None]))  # expect: unstable-composition
        entropy = -(probs * probs.log()).sum(-1)  # expect: unstable-composition
        return chosen.squeeze(1), entropy

    def scores(self, state):
        return self.soft(self.body(state)).log()  # expect: unstable-composition


def several(x, y, z, returns, rate):
    a = torch.log(torch.softmax(x, dim=1))  # expect: unstable-composition
    b = torch.log(torch.sigmoid(y)).sum()  # expect: unstable-composition
    c = torch.log(torch.sum(torch.exp(z), dim=1))  # expect: unstable-composition
    d = torch.log(1 + torch.exp(y))  # expect: unstable-composition
    e = torch.log(1.0 + returns)  # expect: unstable-composition
    f = torch.exp(rate * z) - 1  # expect: unstable-composition
    g = y.sigmoid().log()  # expect: unstable-composition
    return a, b, c, d, e, f, g


def bayesian_ranking(user, positive, negative):
    difference = (user * positive).sum(1) - (user * negative).sum(1)
    return -torch.mean(torch.log(F.sigmoid(difference)))  # expect: unstable-composition


# Look-alikes


def supervised_contrastive(features, mask, temperature=0.07):
    product = features @ features.T / temperature
    largest, _ = torch.max(product, dim=1, keepdim=True)
    logits = product - largest.detach()
    exp_logits = torch.exp(logits) * mask
    return (logits - torch.log(exp_logits.sum(1, keepdim=True))).mean()


def stable_softmax(x):
    x = x - x.max(dim=-1, keepdim=True).values
    e = torch.exp(x)
    return e / e.sum(dim=-1, keepdim=True)


def stable_log_sum_exp(x):
    m = x.amax(-1, keepdim=True)
    return m + torch.log(torch.sum(torch.exp(x - m), dim=-1, keepdim=True))


def with_eps(x):
    probs = torch.softmax(x, -1)
    return torch.log(probs + 1e-8), torch.log(probs.clamp(min=1e-6)), torch.log(probs.clamp_min(1e-6)).sum()


def combined(x, target):
    return F.log_softmax(x, dim=1), torch.logsumexp(x, 1), F.softplus(x), torch.log1p(x), F.cross_entropy(x, target)


def kl_divergence(mu, logvar):
    closed = 0.5 * torch.sum(torch.exp(logvar) - 1 - logvar + mu.pow(2))
    return closed, -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())


def of_numbers(x):
    return math.log(1 + math.exp(0.3)), np.log(1 + np.exp(x)), np.exp(x) / np.exp(x).sum()


def stable_softplus(x):
    return x.clamp(min=0) + torch.log(1 + torch.exp(-x.abs()))


def gaussian(x, mean, logvar):
    return torch.exp(-0.5 * (x - mean) ** 2 / torch.exp(logvar)) / torch.exp(0.5 * logvar)


def log_coordinates(window, magnitude, counts):
    offsets = torch.arange(-window, window + 1, dtype=torch.float32)
    bias = torch.sign(offsets) * torch.log(1.0 + offsets.abs())
    return bias, torch.log(1 + 10000 * magnitude), torch.log(1 + counts)


def durations(predicted, target):
    return torch.clamp(torch.exp(predicted) - 1, 0, 100), torch.log(target.float() + 1), torch.exp(predicted) - 1


def logger_calls(logger, wandb, probs):
    logger.log("softmax", probs)
    wandb.log({"probs": probs.softmax(-1)})
    return probs.softmax(-1).argmax()


def either(x, calibrated: bool):
    scores = torch.softmax(x, -1)
    if calibrated:
        scores = scores * 0.9 + 0.1 / scores.size(-1)
    return torch.log(scores)
