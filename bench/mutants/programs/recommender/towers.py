import torch
from torch import Tensor, nn


class Tower(nn.Module):
    """Turns the embeddings of an entity into the vector that is compared."""

    def __init__(self, in_features: int, hidden: int, out_features: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_features, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, out_features),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class TwoTowerModel(nn.Module):
    """Scores of user-item pairs as scaled dot products of two towers, plus a bias of the item."""

    def __init__(
        self,
        num_users: int,
        item_category: Tensor,
        num_categories: int,
        embedding: int = 24,
        hidden: int = 32,
        output: int = 16,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        num_items = len(item_category)
        self.register_buffer("item_category", item_category)
        self.user_embedding = nn.Embedding(num_users, embedding, sparse=False)
        self.item_embedding = nn.Embedding(num_items, embedding, sparse=False)
        self.category_embedding = nn.Embedding(num_categories, embedding // 2)
        self.item_bias = nn.Embedding(num_items, 1)
        self.user_tower = Tower(embedding, hidden, output, dropout)
        self.item_tower = Tower(embedding + embedding // 2, hidden, output, dropout)
        self.scale = output**-0.5
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for table in (self.user_embedding, self.item_embedding, self.category_embedding):
            nn.init.normal_(table.weight, std=0.3)
        nn.init.zeros_(self.item_bias.weight)

    def encode_users(self, users: Tensor) -> Tensor:
        return self.user_tower(self.user_embedding(users))

    def encode_items(self, items: Tensor) -> Tensor:
        category = self.category_embedding(self.item_category[items])
        return self.item_tower(torch.cat([self.item_embedding(items), category], dim=-1))

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """``users`` has shape (N,), ``items`` (N, K); the logits have the shape of ``items``."""
        user = self.encode_users(users).unsqueeze(1)
        item = self.encode_items(items)
        return (user * item).sum(dim=-1) * self.scale + self.item_bias(items).squeeze(-1)
