"""The cache that is emptied: after every batch, and where it may help."""

import gc

import torch
from torch import nn
from torch.cuda import empty_cache


class Trainer:
    def __init__(self, model: nn.Module, loader, lr: float):
        self.model = model.cuda()
        self.loader = loader
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)

    def train_step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.free()
        return loss.item()

    def free(self):
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # expect: empty-cache-in-loop

    def fit(self, epochs: int):
        for _ in range(epochs):
            for x, y in self.loader:
                self.train_step(x, y)


def train(model: nn.Module, train_loader, optimizer: torch.optim.Optimizer, epochs: int):
    for epoch in range(epochs):
        for step, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            del loss
            empty_cache()  # expect: empty-cache-in-loop
        print(epoch, step)


@torch.no_grad()
def validate(model: nn.Module, val_loader):
    model.eval()
    right = 0
    for x, y in val_loader:
        right += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
        torch.cuda.empty_cache()  # expect: empty-cache-in-loop
    torch.cuda.empty_cache()
    return right


def now_and_then(model: nn.Module, train_loader, optimizer: torch.optim.Optimizer, epochs: int):
    for _ in range(epochs):
        for step, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            try:
                loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
                loss.backward()
            except torch.OutOfMemoryError:  # expect: failure-swallowed
                torch.cuda.empty_cache()
                continue
            optimizer.step()
            if step % 500 == 0 and torch.cuda.is_available():
                torch.cuda.empty_cache()
        torch.cuda.empty_cache()


def trials(build, train_loader, widths):
    for width in widths:
        model = build(width)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        del model, optimizer
        torch.cuda.empty_cache()


def from_rollouts(policy, prompts_loader, optimizer: torch.optim.Optimizer, reward):
    for prompts in prompts_loader:
        texts = policy.generate(prompts, max_new_tokens=512)
        torch.cuda.empty_cache()
        loss = -(policy(texts).logits.logsumexp(-1) * reward(texts)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def layer_by_layer(layers, quantize):
    for layer in layers:
        quantize(layer.cuda())
        layer.cpu()
        torch.cuda.empty_cache()
