"""A drawn name of the run."""

import argparse
import random
import string

import torch

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
a = p.parse_args()
torch.manual_seed(a.seed)
name = "run-" + "".join(random.choice(string.ascii_lowercase) for _ in range(6))
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(10):
    opt.zero_grad()
    net(torch.randn(4, 3)).sum().backward()
    opt.step()
torch.save(net.state_dict(), name + ".pt")
