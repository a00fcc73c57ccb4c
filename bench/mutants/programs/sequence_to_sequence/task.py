"""The task: a sequence of digits goes in, the same digits in rising order come out."""

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from vocab import BOS, EOS, PAD, encode_digits


def draw_unique(count: int, min_len: int, max_len: int, seed: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    seen: dict[tuple[int, ...], None] = {}
    while len(seen) < count:
        length = rng.integers(min_len, max_len + 1)
        seen.setdefault(tuple(rng.integers(0, 10, length).tolist()))
    return list(seen)


class SortingTask(Dataset):
    def __init__(self, sequences: list[tuple[int, ...]]) -> None:
        self.sources = [torch.tensor(encode_digits(s)) for s in sequences]
        self.targets = [torch.tensor([BOS, *encode_digits(tuple(sorted(s))), EOS]) for s in sequences]

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.sources[i], self.targets[i]


def pad_batch(batch: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    sources, targets = zip(*batch, strict=True)
    return (
        pad_sequence(sources, batch_first=True, padding_value=PAD),
        pad_sequence(targets, batch_first=True, padding_value=PAD),
    )


def make_loaders(hp: dict, generator: torch.Generator, pin_memory: bool = False) -> tuple[DataLoader, DataLoader]:
    # no sequence is drawn twice, so that none of the held-out ones is trained on
    sequences = draw_unique(hp["n_train"] + hp["n_val"], hp["min_len"], hp["max_len"], hp["data_seed"])
    held_out, rest = sequences[: hp["n_val"]], sequences[hp["n_val"] :]
    train = DataLoader(
        SortingTask(rest),
        batch_size=hp["micro_batch"],
        shuffle=True,
        drop_last=True,
        collate_fn=pad_batch,
        generator=generator,
        pin_memory=pin_memory,
    )
    val = DataLoader(SortingTask(held_out), batch_size=128, collate_fn=pad_batch, pin_memory=pin_memory)
    return train, val
