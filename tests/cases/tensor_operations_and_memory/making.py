"""Tensors that are made anew from tensors, or in one place for another."""

import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint as cp
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch.utils.data import DataLoader


class Recurrent(nn.Module):
    def __init__(self, layers: int, width: int):
        super().__init__()
        self.layers, self.width = layers, width
        self.rnn = nn.LSTM(width, width, layers, batch_first=True)
        self.register_buffer("scale", torch.ones(width).to("cuda"))

    def forward(self, x, device):
        h = torch.zeros(self.layers, x.size(0), self.width).to(device)  # expect: created-then-moved
        c = torch.zeros(self.layers, x.size(0), self.width, device=x.device)
        mask = torch.ones(x.size(0)).to(x.dtype)
        return self.rnn(x, (h, c))[0] * mask[:, None, None]


def train(generator: nn.Module, discriminator: nn.Module, loader, opt_d: torch.optim.Optimizer, device):
    weights = torch.linspace(0, 1, 16).to(device)
    for real, _ in loader:
        real = real.to(device)
        ones = torch.ones(real.size(0), 1).cuda()  # expect: created-then-moved
        noise = torch.randn(real.size(0), 64).to(device)  # expect: created-then-moved
        fixed = torch.randn(16, 64, generator=torch.Generator().manual_seed(0)).to(device)
        labels = torch.tensor([0.0, 1.0]).to(device)
        on_host = torch.zeros(real.size(0)).to("cpu")
        opt_d.zero_grad()
        loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
        loss = loss + discriminator(generator(noise)).mean() + labels.sum() + weights.sum() + fixed.sum()
        loss.backward()
        opt_d.step()
        print(on_host.sum())


def settings(device):
    for name in ("low", "high"):
        yield name, torch.zeros(3).to(device)


def targets_again(model: nn.Module, dataset):
    loader = DataLoader(dataset, batch_size=8, num_workers=2)
    for inputs, targets in loader:
        targets = torch.tensor(targets)  # expect: tensor-of-tensor
        weights = torch.tensor(targets, dtype=torch.float32)  # expect: tensor-of-tensor
        print(F.cross_entropy(model(inputs), targets), weights)


def lists(dataset, train_loader):
    """A loader from elsewhere, or one with a collate_fn, may give lists."""
    loader = DataLoader(dataset, batch_size=8, collate_fn=list)
    for inputs, targets in train_loader:
        print(torch.tensor(inputs), torch.tensor(targets))
    for batch in loader:
        print(torch.tensor(batch[0]["input_ids"]))


def best(scores: torch.Tensor, values: list[float]):
    top = scores.max(dim=1)
    peak = torch.tensor(scores.max())  # expect: tensor-of-tensor
    plain = torch.tensor(values)
    number = torch.tensor(scores.max().item())
    shape = torch.tensor(scores.shape)
    rows = [torch.tensor(scores) for scores in values]
    return top, peak, plain, number, shape, rows


def wrapped_if_needed(x: torch.Tensor):
    if not isinstance(x, torch.Tensor):
        x = torch.tensor(x)
    return x


def from_numpy(path):
    data = np.load(path)
    data = torch.tensor(data)
    return data.clone()


class Deep(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.body = nn.Sequential(*blocks)

    def forward(self, x, mask):
        for block in self.blocks:
            x = checkpoint(block, x, mask)  # expect: checkpoint-reentrant-unset
        x = cp.checkpoint(self.blocks[0], x, use_reentrant=False)
        x = checkpoint_sequential(self.body, 4, x)  # expect: checkpoint-reentrant-unset
        return torch.utils.checkpoint.checkpoint(  # expect: checkpoint-reentrant-unset
            self.body,
            x,
        )

    def told(self, x, **how):
        return checkpoint(self.body, x, **how)


class Saver:
    def checkpoint(self, path):
        return path

    def run(self, path):
        return self.checkpoint(path)


def normalised(latents: torch.Tensor, mean: torch.Tensor):
    """Annotated as a tensor, and given the list of a config."""
    return latents - torch.tensor(mean).view(1, -1, 1, 1)
