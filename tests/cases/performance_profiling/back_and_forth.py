"""A model that goes to the host and back in each iteration, by a helper."""

import torch


def to_device(device, *args):
    return [x.to(device) for x in args]


dev = torch.device("cuda")
policy = torch.nn.Linear(4, 2).to(dev)
opt = torch.optim.Adam(policy.parameters())
for it in range(100):
    to_device(torch.device("cpu"), policy)
    out = policy(torch.randn(1, 4))
    to_device(dev, policy)
    loss = policy(torch.randn(8, 4, device=dev)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
