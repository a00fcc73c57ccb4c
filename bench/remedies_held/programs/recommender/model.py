"""Two towers: a user's vector, and an item's from its features."""

import torch
from torch import nn


class ItemTower(nn.Module):
    def __init__(self, features, values=50, width=32, columns=6):
        super().__init__()
        self.register_buffer("features", features)
        self.tables = nn.ModuleList([nn.Embedding(values, width) for _ in range(columns)])
        self.mix = nn.Sequential(nn.Linear(columns * width, 128), nn.ReLU(), nn.Linear(128, width))

    def forward(self, items):
        picked = self.features[items]
        parts = [table(picked[:, column]) for column, table in enumerate(self.tables)]
        return self.mix(torch.cat(parts, dim=1))


class Recommender(nn.Module):
    def __init__(self, users, features, width=32):
        super().__init__()
        self.user_table = nn.Embedding(users, width)
        nn.init.normal_(self.user_table.weight, std=0.1)
        self.item_tower = ItemTower(features, width=width)
        self.popular = nn.Linear(width, 1)

    def forward(self, users, items):
        vectors = self.item_tower(items)
        return (self.user_table(users) * vectors).sum(dim=1) + self.popular(vectors).squeeze(1)
