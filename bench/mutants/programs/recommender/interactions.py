"""Implicit feedback of made-up users, and loaders for it."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset


@dataclass(frozen=True)
class Interactions:
    """Pairs of a user and an item; the last item of every user is held out."""

    train_users: np.ndarray
    train_items: np.ndarray
    test_items: np.ndarray  # one for every user
    seen: np.ndarray  # users x items, true for the pairs of the training part
    item_category: np.ndarray
    num_users: int
    num_items: int
    num_categories: int


def simulate(users: int, items: int, per_user: int, tastes: int, seed: int) -> Interactions:
    """Users like two of the tastes each; an item serves one taste, and has a popularity of its own."""
    rng = np.random.default_rng(seed)
    item_taste = rng.integers(0, tastes, items)
    popularity = rng.normal(0.0, 0.7, items)
    affinity = rng.normal(0.0, 0.4, (users, tastes))
    first = rng.integers(0, tastes, users)
    second = (first + rng.integers(1, tastes, users)) % tastes
    rows = np.arange(users)
    affinity[rows, first] += 4.0
    affinity[rows, second] += 3.0

    utility = affinity[:, item_taste] + popularity + rng.gumbel(size=(users, items))
    chosen = np.argpartition(-utility, per_user, axis=1)[:, :per_user]
    chosen = rng.permuted(chosen, axis=1)
    train, test = chosen[:, :-1], chosen[:, -1]

    seen = np.zeros((users, items), dtype=bool)
    np.put_along_axis(seen, train, True, axis=1)
    # what the shop knows of an item: a coarse category that covers two tastes
    return Interactions(
        train_users=np.repeat(rows, per_user - 1),
        train_items=train.ravel(),
        test_items=test,
        seen=seen,
        item_category=item_taste // 2,
        num_users=users,
        num_items=items,
        num_categories=(tastes + 1) // 2,
    )


class PositivePairs(Dataset):
    def __init__(self, data: Interactions) -> None:
        self.users = torch.from_numpy(data.train_users)
        self.items = torch.from_numpy(data.train_items)

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.users[index], self.items[index]

    def __getitems__(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """The pairs of a whole batch at once, which is what the loader asks for."""
        rows = torch.tensor(indices)
        return self.users[rows], self.items[rows]


class NegativeSamplingCollate:
    """Adds items that the user has not met to every positive pair of a batch."""

    def __init__(self, data: Interactions, negatives: int, seed: int) -> None:
        self.seen = data.seen
        self.num_items = data.num_items
        self.negatives = negatives
        self.rng = np.random.default_rng(seed)

    def draw(self, users: np.ndarray) -> np.ndarray:
        drawn = self.rng.integers(0, self.num_items, (len(users), self.negatives))
        clash = self.seen[users[:, None], drawn]
        while clash.any():
            drawn[clash] = self.rng.integers(0, self.num_items, int(clash.sum()))
            clash = self.seen[users[:, None], drawn]
        return drawn

    def __call__(self, pairs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Users (N), items (N x 1 + negatives) with the positive first, and labels of the same shape."""
        users, positive = pairs
        negative = torch.from_numpy(self.draw(users.numpy()))
        items = torch.cat([positive.unsqueeze(1), negative], dim=1)
        labels = torch.zeros(items.shape)
        labels[:, 0] = 1.0
        return users, items, labels


def evaluation_candidates(data: Interactions, negatives: int, seed: int) -> tuple[Tensor, Tensor]:
    """For every user the held-out item, followed by unmet items in a fixed choice."""
    rng = np.random.default_rng(seed)
    allowed = ~data.seen
    allowed[np.arange(data.num_users), data.test_items] = False
    scores = np.where(allowed, rng.random(allowed.shape), -1.0)
    negative = np.argsort(-scores, axis=1)[:, :negatives]
    items = np.concatenate([data.test_items[:, None], negative], axis=1)
    return torch.arange(data.num_users), torch.from_numpy(items)
