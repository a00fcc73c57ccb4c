"""Lists of layers that are multiplied, and lists that may be."""

import copy

import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc(self.norm(x))


class Stacked(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width)] * depth)  # expect: layers-shared-by-repetition
        self.body = nn.Sequential(*[nn.Linear(width, width), nn.ReLU()] * 3)  # expect: layers-shared-by-repetition
        layer = nn.Conv1d(width, width, 3, padding=1)
        self.convs = nn.ModuleList(depth * [layer])  # expect: layers-shared-by-repetition

        self.pairs = nn.ModuleList((nn.Linear(width, width),) * 2)  # expect: layers-shared-by-repetition
        block = Block(width)
        self.stages = nn.ModuleList([block for _ in range(depth)])  # expect: layers-shared-by-repetition
        self.tail = nn.Sequential(*(block for _ in range(depth)))  # expect: layers-shared-by-repetition
        self.heads = nn.ModuleList()
        head = nn.Linear(width, width)
        for _ in range(depth):
            self.heads.append(head)  # expect: layers-shared-by-repetition

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.body(x)


def make_head(width, hidden, depth, classes):
    layers = [nn.Linear(width, hidden)] + [nn.Linear(hidden, hidden)] * (depth - 1)  # expect: layers-shared-by-repetition
    layers += [nn.LSTMCell(hidden, hidden)] * 2  # expect: layers-shared-by-repetition
    return nn.Sequential(*layers, nn.Linear(hidden, classes))


class OneEach(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        block = Block(width)
        self.copies = nn.ModuleList([copy.deepcopy(block) for _ in range(depth)])
        self.all = nn.ModuleList([each for each in self.copies])
        self.more = nn.ModuleList()
        for _ in range(depth):
            fresh = Block(width)
            self.more.append(fresh)
        act = nn.ReLU()
        self.gates = nn.ModuleList([act for _ in range(depth)])
        if depth > 8:
            self.few = nn.ModuleList([block for _ in range(depth)])
        self.acts = nn.ModuleList([nn.ReLU()] * depth)
        self.drops = nn.ModuleList([nn.Dropout(0.1)] * depth)
        self.kinds = [Block] * depth
        self.sizes = [width] * depth
        self.slots = [None] * depth
        self.single = nn.Sequential(*[Block(width)] * 1)
        self.plain = nn.ModuleList([nn.BatchNorm1d(width, affine=False)] * depth)


class SharedEncoder(nn.Module):
    """One layer, applied again and again."""

    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([Block(width)] * depth)


class Albert(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        # all layers share their weights
        self.layers = nn.ModuleList([Block(width)] * depth)


def given(layer, depth):
    return nn.ModuleList([layer] * depth), torch.zeros(3) * 2
