"""Losses that are below 0, and healthy: densities, surrogates, entropies that are raised, masks for what is missing."""

import torch
from torch import nn

torch.manual_seed(0)


def train(model, loss_of, steps=70, rate=1e-2):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, torch.randn(32, 8)).backward()
        optimizer.step()


def density(model, x):
    """The likelihood of a density is above 1 where it is narrow."""
    mean, spread = model(x).chunk(2, 1)
    return nn.functional.gaussian_nll_loss(mean, 0.01 * x[:, :2], nn.functional.softplus(spread) + 1e-4)


def surrogate(model, x):
    """A policy gradient: the logarithm of what was drawn, times its advantage."""
    policy = torch.distributions.Categorical(logits=model(x)[:, :3])
    drawn = policy.sample()
    return -(policy.log_prob(drawn) * ((drawn == 1).float() - 0.3)).mean()


def weighed(model, x):
    """The same by way of cross_entropy."""
    logits = model(x)[:, :3]
    drawn = torch.distributions.Categorical(logits=logits).sample()
    each = nn.functional.cross_entropy(logits, drawn, reduction="none")
    return (each * ((drawn == 1).float() - 0.3)).mean()


def confused(model, x):
    """An adversary raises the cross entropy of another network."""
    return -0.1 * nn.functional.cross_entropy(model(x), x[:, :4].argmax(1)).clamp(max=3.0)


def by_hand(model, x):
    """Log-probabilities made by hand."""
    scores = model(x)
    return nn.functional.nll_loss(scores - scores.logsumexp(1, keepdim=True), x[:, :4].argmax(1))


def mixed(model, x):
    """The logarithm of a mixture of two softmaxes."""
    both = torch.stack([model(x).softmax(1), model(-x).softmax(1)]).mean(0)
    return nn.functional.nll_loss((both + 1e-8).log(), x[:, :4].argmax(1))


def missing(model, x):
    """-1 stands for a label that is missing, and is masked."""
    labels = torch.where(x[:, :4] > 1, -1.0, (x[:, :4] > 0).float())
    each = nn.functional.binary_cross_entropy_with_logits(model(x), labels, reduction="none")
    known = (labels >= 0).float()
    return (each * known).sum() / known.sum()


def missing_by_weight(model, x):
    labels = torch.where(x[:, :4] > 1, -1.0, (x[:, :4] > 0).float())
    return nn.functional.binary_cross_entropy_with_logits(model(x), labels, weight=(labels >= 0).float())


def smoothed(model, x):
    """Soft targets, and a part of the classes that is cut off."""
    scores = torch.log_softmax(model(x), 1)
    return nn.functional.nll_loss(scores.masked_fill(scores < -8, -8.0), x[:, :4].argmax(1))


for each in (density, surrogate, weighed, confused, by_hand, mixed, missing, missing_by_weight, smoothed):
    train(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), each)
