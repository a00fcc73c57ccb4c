import random

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from synth import make_corpus


class KeywordDataset(Dataset):
    def __init__(self, count: int, seed: int) -> None:
        waves, labels = make_corpus(count, seed)
        self.waves = [torch.from_numpy(wave) for wave in waves]
        self.labels = torch.from_numpy(labels)

    def __len__(self) -> int:
        return len(self.waves)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.waves[index], self.labels[index]


def collate(batch: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Pads the waves with silence; `lengths` counts samples and stays on the CPU for packing."""
    waves, labels = zip(*batch, strict=True)
    return {
        "waves": pad_sequence(waves, batch_first=True),
        "lengths": torch.tensor([len(wave) for wave in waves]),
        "labels": torch.stack(labels),
    }


def seed_worker(worker_id: int) -> None:
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def make_loader(
    dataset: KeywordDataset, batch_size: int, train: bool, generator: torch.Generator, num_workers: int, pin: bool
) -> DataLoader:
    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=train,
        drop_last=train,
        collate_fn=collate,
        generator=generator,
        num_workers=num_workers,
        worker_init_fn=seed_worker,
        pin_memory=pin,
    )
