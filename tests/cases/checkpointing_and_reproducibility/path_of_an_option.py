"""A checkpoint whose path is an option of the command line."""

import argparse
import os

import torch
from torch import nn


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--checkpoint", default="ck.pt")
    p.add_argument("--iters", type=int, default=1000)
    return p.parse_args()


def main():
    args = parse()
    policy = nn.Linear(4, 2)
    opt = torch.optim.RMSprop(policy.parameters(), lr=7e-4)
    it = 0
    if os.path.isfile(args.checkpoint):
        ck = torch.load(args.checkpoint)
        policy.load_state_dict(ck["policy"])
        opt.load_state_dict(ck["opt"])
        it = ck["it"]
    while it < args.iters:
        obs = torch.randn(16, 4)
        loss = -policy(obs).log_softmax(1)[:, 0].mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        it += 1
        if it % 50 == 0:
            target = args.checkpoint
            torch.save({"policy": policy.state_dict(), "opt": opt.state_dict(), "it": it}, target)  # expect: save-not-atomic


main()
