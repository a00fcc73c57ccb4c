"""Trains a classifier and reports its accuracy on held-out batches."""

import torch
from torch import nn


def make_model():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))


def train_step(model, optimizer, inputs, labels):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def evaluate(model, batches):
    """The accuracy over all batches, and the logits of each batch, for the report."""
    model.eval()
    logits, right, seen = [], 0, 0
    for inputs, labels in batches:
        output = model(inputs)
        logits.append(output)
        right += (output.argmax(1) == labels).sum().item()
        seen += len(labels)
    return right / seen, logits
