"""Copies in other streams that somebody waits for, or may wait for."""

import torch
from torch import nn


def train(model, loader, optimizer):
    side = torch.cuda.Stream()
    for inputs, targets in loader:
        with torch.cuda.stream(side):
            inputs = inputs.cuda(non_blocking=True)
            targets = targets.cuda(non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()


def by_event(model, batch):
    stream, copied = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(stream):
        inputs = batch.cuda(non_blocking=True)
        copied.record()
    copied.wait()
    return model(inputs)


def by_host(model, batch):
    copies = torch.cuda.Stream()
    with torch.cuda.stream(copies):
        inputs = batch.cuda(non_blocking=True)
    torch.cuda.synchronize()
    return model(inputs)


def blocking(batch):
    quiet = torch.cuda.Stream()
    with torch.cuda.stream(quiet):
        inputs = batch.cuda()
    return inputs * 2


def within(batch):
    whole = torch.cuda.Stream()
    with torch.cuda.stream(whole):
        inputs = batch.cuda(non_blocking=True)
        outputs = inputs * 2
    return outputs.shape


def in_the_same(batch):
    same = torch.cuda.Stream()
    with torch.cuda.stream(same):
        inputs = batch.cuda(non_blocking=True)
    with torch.cuda.stream(same):
        return inputs * 2


def handed_on(batch, wait_for):
    given = torch.cuda.Stream()
    with torch.cuda.stream(given):
        inputs = batch.cuda(non_blocking=True)
    wait_for(given)
    return inputs * 2


class Prefetcher:
    def __init__(self, loader):
        self.loader, self.stream = iter(loader), torch.cuda.Stream()

    def preload(self):
        self.batch = next(self.loader, None)
        with torch.cuda.stream(self.stream):
            self.batch = self.batch.cuda(non_blocking=True)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.batch
        self.preload()
        return batch


def warmed_up(model, batch):
    """As torch asks for it ahead of a graph."""
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(3):
            model(batch)
    torch.cuda.current_stream().wait_stream(warm)
    return model(batch)


class Waiting(nn.Module):
    def __init__(self, net, stream):
        super().__init__()
        self.net, self.stream = net, stream

    def forward(self, inputs):
        torch.cuda.current_stream().wait_stream(self.stream)
        return self.net(inputs)


def within_the_model(net, batch):
    side_of_model = torch.cuda.Stream()
    model = Waiting(net, side_of_model)
    with torch.cuda.stream(side_of_model):
        inputs = batch.cuda(non_blocking=True)
    return model(inputs)


def counted(batch):
    sized = torch.cuda.Stream()
    with torch.cuda.stream(sized):
        inputs = batch.cuda(non_blocking=True)
        count = inputs.size(0)
    return count * 2
