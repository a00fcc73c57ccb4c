"""A loader that is made once for as many steps as an epoch has."""

import math
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Lines(Dataset):
    def __init__(self, path):
        self.rows = []
        for line in open(path):
            self.rows.append(line)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.ones(4), torch.ones(1)


net = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train():
    dataset = Lines(sys.argv[1])
    per_epoch = math.ceil(len(dataset) / 8)
    for step in range(0, 250 * per_epoch):
        if step % per_epoch == 0:
            batches = iter(DataLoader(dataset, 8, shuffle=True, num_workers=2))
        x, y = next(batches)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train()
