"""Copies of a stream for which nothing waits."""

import torch
from torch import nn


def train(model, loader, optimizer):
    side = torch.cuda.Stream()
    for inputs, targets in loader:
        with torch.cuda.stream(side):
            inputs = inputs.cuda(non_blocking=True)
            targets = targets.cuda(non_blocking=True)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)  # expect: stream-not-waited
        loss.backward()
        optimizer.step()


def normalised(batch, mean, std):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        images = batch.to("cuda", non_blocking=True)
    images.record_stream(torch.cuda.current_stream())
    return (images - mean) / std  # expect: stream-not-waited


def prepared(model, loader):
    copies = torch.cuda.Stream()
    for batch in loader:
        with torch.cuda.stream(copies):
            images = batch.cuda(non_blocking=True)
            pixels = images.float()
            scaled = pixels / 255
        yield model(scaled).argmax(1)  # expect: stream-not-waited
