"""What is made on the host is filled there, row by row."""

import torch


def encode(n, dev):
    out = torch.zeros(n, 8)
    for i in range(n):
        out[i, :3] = torch.tensor([1.0, 2.0, 3.0])
    return out.to(dev)


class M(torch.nn.Module):
    def forward(self, x):
        return x + encode(len(x), x.device)
