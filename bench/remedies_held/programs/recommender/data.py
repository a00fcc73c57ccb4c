"""Who liked what: made from hidden tastes, with features of each item."""

import torch
from torch.utils.data import Dataset


class Likes(Dataset):
    """Rows of user, an item that they liked, and one that they did not; six features for each item."""

    def __init__(self, users=400, items=600, rows=12000, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.users, self.items = users, items
        self.features = torch.randint(0, 50, (items, 6), generator=generator)
        taste = torch.randn(users, 12, generator=generator)
        meaning = torch.randn(6, 50, 12, generator=generator)
        kind = sum(meaning[column][self.features[:, column]] for column in range(6))
        scores = 0.5 * taste @ kind.T + 4.0 * kind.sum(dim=1)
        user = torch.randint(0, users, (rows,), generator=generator)
        first = torch.randint(0, items, (rows,), generator=generator)
        second = torch.randint(0, items, (rows,), generator=generator)
        is_first = scores[user, first] > scores[user, second]
        self.rows = torch.stack([user, torch.where(is_first, first, second), torch.where(is_first, second, first)], 1)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]
