"""A made-up table of flats, its preparation, and batches of it."""

from dataclasses import dataclass

import numpy as np
import torch

CATEGORICAL = {"district": 24, "heating": 5, "kind": 6, "energy_class": 7}
NUMERIC = ("area", "rooms", "floor", "year", "distance", "noise_level")


@dataclass
class Table:
    categories: np.ndarray  # int64, (rows, len(CATEGORICAL))
    numbers: np.ndarray  # float64, (rows, len(NUMERIC)), NaN where unknown
    target: np.ndarray  # float64, (rows,)

    def __len__(self) -> int:
        return len(self.target)

    def take(self, index: np.ndarray) -> "Table":
        return Table(self.categories[index], self.numbers[index], self.target[index])


def make_table(rows: int, seed: int = 5) -> Table:
    rng = np.random.default_rng(seed)
    categories = np.stack([rng.integers(0, n, rows) for n in CATEGORICAL.values()], axis=1)
    area = rng.gamma(6.0, 12.0, rows) + 15
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.6, rows)), 1, 8)
    floor = rng.integers(0, 12, rows)
    year = rng.integers(1890, 2024, rows)
    distance = rng.exponential(4.0, rows)
    noise_level = rng.normal(55, 8, rows)
    numbers = np.stack([area, rooms, floor, year, distance, noise_level], axis=1).astype(np.float64)

    district_level = rng.normal(0, 2.0, CATEGORICAL["district"])
    district_slope = rng.uniform(0.1, 0.6, CATEGORICAL["district"])
    kind_level = rng.normal(0, 1.0, CATEGORICAL["kind"])
    energy_level = np.linspace(1.0, -1.0, CATEGORICAL["energy_class"])
    district, _, kind, energy = categories.T
    per_metre = (
        12.0
        + district_level[district]
        - district_slope[district] * distance
        + kind_level[kind]
        + energy_level[energy]
        + 1.2 * (year > 2000)
        - 0.04 * (noise_level - 55)
        + 0.1 * floor * (kind < 3)
    )
    target = area * np.clip(per_metre, 4.0, None) + rng.normal(0, 40.0, rows)

    numbers[rng.random(numbers.shape) < 0.02] = np.nan
    return Table(categories, numbers, target)


def split(table: Table, fractions: tuple[float, float], seed: int = 6) -> tuple[Table, Table, Table]:
    order = np.random.default_rng(seed).permutation(len(table))
    n_train = int(fractions[0] * len(table))
    n_val = int(fractions[1] * len(table))
    parts = np.split(order, [n_train, n_train + n_val])
    return table.take(parts[0]), table.take(parts[1]), table.take(parts[2])


class Preprocessor:
    """Fills, scales and indexes; everything it knows comes from the rows given to fit()."""

    def fit(self, table: Table) -> "Preprocessor":
        self.median = np.nanmedian(table.numbers, axis=0)
        filled = np.where(np.isnan(table.numbers), self.median, table.numbers)
        self.mean, self.std = filled.mean(axis=0), filled.std(axis=0)
        self.target_mean, self.target_std = float(table.target.mean()), float(table.target.std())
        # index 0 stands for values that the training rows do not have
        self.vocabulary = [
            {int(value): i + 1 for i, value in enumerate(np.unique(column))} for column in table.categories.T
        ]
        return self

    def transform(self, table: Table) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        missing = np.isnan(table.numbers)
        numbers = (np.where(missing, self.median, table.numbers) - self.mean) / self.std
        numbers = np.concatenate([numbers, missing], axis=1).astype(np.float32)
        categories = np.stack(
            [
                [vocabulary.get(int(value), 0) for value in column]
                for vocabulary, column in zip(self.vocabulary, table.categories.T, strict=True)
            ],
            axis=1,
        )
        target = ((table.target - self.target_mean) / self.target_std).astype(np.float32)
        return torch.from_numpy(categories), torch.from_numpy(numbers), torch.from_numpy(target)

    @property
    def cardinalities(self) -> list[int]:
        return [len(vocabulary) + 1 for vocabulary in self.vocabulary]


class TensorLoader:
    """Batches cut from whole tensors by index, much quicker than collating row by row."""

    def __init__(self, tensors, batch_size: int, generator: torch.Generator | None = None, drop_last: bool = False):
        self.tensors = tensors
        self.batch_size = batch_size
        self.generator = generator
        self.drop_last = drop_last

    def __len__(self) -> int:
        n = len(self.tensors[0])
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self):
        n = len(self.tensors[0])
        order = torch.arange(n) if self.generator is None else torch.randperm(n, generator=self.generator)
        order = order.to(self.tensors[0].device)
        for i in range(len(self)):
            index = order[i * self.batch_size : (i + 1) * self.batch_size]
            yield tuple(tensor[index] for tensor in self.tensors)
