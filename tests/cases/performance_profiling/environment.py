"""Variables of the environment that are kept in a dictionary."""

import os

import torch

ENV = {"OMP_NUM_THREADS": "4", "TOKENIZERS_PARALLELISM": "false"}
ENV["CUDA_LAUNCH_BLOCKING"] = "1"
os.environ.update(ENV)  # expect: debug-left-on


def main(model, loader):
    opt = torch.optim.Adam(model.parameters())
    for x, y in loader:
        loss = (model(x) - y).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
