import torch
import torch.nn as nn


def embedding_dim(cardinality: int) -> int:
    return min(16, (cardinality + 1) // 2)


class ResidualBlock(nn.Module):
    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.layers = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * dim, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(self.norm(x))


class TabularNet(nn.Module):
    def __init__(self, cardinalities: list[int], n_numbers: int, dim: int, n_blocks: int, dropout: float) -> None:
        super().__init__()
        dims = [embedding_dim(n) for n in cardinalities]
        self.embeddings = nn.ModuleList(nn.Embedding(n, d) for n, d in zip(cardinalities, dims, strict=True))
        self.stem = nn.Linear(sum(dims) + n_numbers, dim)
        self.blocks = nn.ModuleList(ResidualBlock(dim, dropout) for _ in range(n_blocks))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.ReLU(), nn.Linear(dim, 1))
        for embedding in self.embeddings:
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, categories: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        embedded = [layer(column) for layer, column in zip(self.embeddings, categories.unbind(1), strict=True)]
        x = self.stem(torch.cat([*embedded, numbers], dim=1))
        for block in self.blocks:
            x = block(x)
        return self.head(x).squeeze(1)
