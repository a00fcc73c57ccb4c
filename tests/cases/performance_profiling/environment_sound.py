"""Variables of the environment that are kept in a dictionary, healthy."""

import os

import torch

ENV = {"OMP_NUM_THREADS": "4", "TOKENIZERS_PARALLELISM": "false"}
os.environ.update(ENV)


def main(model, loader):
    opt = torch.optim.Adam(model.parameters())
    for x, y in loader:
        loss = (model(x) - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
