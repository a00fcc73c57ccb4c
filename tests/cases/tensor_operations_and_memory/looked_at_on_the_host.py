"""Tensors that the host needs before the device gets them, and one that is made like another."""

import torch
from torch import nn


def random_box(height, width, size):
    for _ in range(20):
        top = torch.randint(0, height - size + 1, (1,)).item()
        left = torch.randint(0, width - size + 1, (1,)).item()
        box = torch.zeros((height, width), dtype=torch.int32)
        box[top : top + size, left : left + size] = 1
        if torch.sum(box) >= 1:
            return box
    return box


class Masker(nn.Module):
    def forward(self, x, height, width):
        device = x.device
        boxes = [random_box(height, width, size) for size in (9, 3, 3)]
        context = boxes[0]
        for box in boxes[1:]:
            context = context * (1 - box)
        keep = context.flatten().bool().to(device)
        return x * keep.unsqueeze(-1)


class Pooler(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.lin = nn.Linear(4, 2)

    def block(self, graphs):
        index, start = [], 0
        for graph in graphs:
            index.append(graph.edges + start)
            start += graph.size
        index = torch.cat(index, 1)
        ones = torch.ones(index.shape[1])
        adjacency = torch.sparse.FloatTensor(index, ones, torch.Size([start, start]))
        return adjacency.to(self.device)

    def forward(self, graphs):
        x = torch.cat([graph.features for graph in graphs]).to(self.device)
        return self.lin(torch.spmm(self.block(graphs), x))


class Masked(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x, masks):
        first = torch.ones((x.shape[0], 1)).to(masks)  # expect: created-then-moved
        return self.layer(x) * torch.cat([first, masks], dim=1)
