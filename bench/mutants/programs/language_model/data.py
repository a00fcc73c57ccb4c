"""A generated chronicle, written once as token files and then read through memory maps."""

import os
from pathlib import Path

import numpy as np
import torch

# index 0 is never produced by the encoder; the table is filled up to a multiple of eight
ALPHABET = "\0\n abcdefghijklmnopqrstuvwxyz0123456789.,"
VOCAB_SIZE = 48

SYLLABLES = "ka ri mo ten va lu sho per ani del gor eth wyn osh bar nil tul fen ira cas".split()
ROLES = "king queen smith baker sailor weaver hunter judge".split()
VERBS = "built sold found burned lost moved".split()
THINGS = "a tower,a bridge,the mill,a ship,the old gate,a garden,the market".split(",")
PLACES = "by the river,on the hill,near the sea,in the valley,at the border".split(",")

_STOI = {ch: i for i, ch in enumerate(ALPHABET)}


def encode(text: str) -> np.ndarray:
    return np.array([_STOI[ch] for ch in text], dtype=np.uint16)


def decode(tokens: list[int]) -> str:
    return "".join(ALPHABET[t] if t < len(ALPHABET) else "?" for t in tokens)


def _sentence(rng: np.random.Generator) -> str:
    name = "".join(rng.choice(SYLLABLES, size=rng.integers(3, 5)))
    year = rng.integers(1000, 2000)
    role, verb = rng.choice(ROLES), rng.choice(VERBS)
    thing, place = rng.choice(THINGS), rng.choice(PLACES)
    if rng.random() < 0.5:
        return f"in {year} {name} the {role} {verb} {thing} {place}.\n"
    return f"{name} the {role} {verb} {thing} {place}, and {name} died in {year}.\n"


def write_corpus(path: Path, n_chars: int, rng: np.random.Generator) -> None:
    sentences, total = [], 0
    while total < n_chars:
        sentences.append(_sentence(rng))
        total += len(sentences[-1])
    tmp = path.with_suffix(".tmp")
    encode("".join(sentences)[:n_chars]).tofile(tmp)
    os.replace(tmp, path)


def prepare(out_dir: Path, train_chars: int, val_chars: int, data_seed: int = 2024) -> None:
    """Writes train.bin and val.bin unless they are there. The splits come from independent streams."""
    streams = np.random.SeedSequence(data_seed).spawn(2)
    for name, n_chars, stream in zip(("train", "val"), (train_chars, val_chars), streams, strict=True):
        path = out_dir / f"{name}.bin"
        if not path.exists():
            write_corpus(path, n_chars, np.random.default_rng(stream))


class TokenFile:
    """A flat file of uint16 tokens."""

    def __init__(self, path: Path, block_size: int, device: torch.device) -> None:
        self.tokens = np.memmap(path, dtype=np.uint16, mode="r")
        self.block_size = block_size
        self.device = device

    def _to_device(self, array: np.ndarray) -> torch.Tensor:
        tensor = torch.from_numpy(array.astype(np.int64))
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def _windows(self, starts: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        index = starts[:, None] + np.arange(self.block_size + 1)
        chunk = self.tokens[index]
        return self._to_device(chunk[:, :-1]), self._to_device(chunk[:, 1:])

    def get_batch(self, batch_size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Random windows; y is x shifted by one character."""
        starts = torch.randint(len(self.tokens) - self.block_size, (batch_size,), generator=generator)
        return self._windows(starts.numpy())

    def sequential(self, batch_size: int):
        """Every window once, in order and without overlap."""
        starts = np.arange(0, len(self.tokens) - self.block_size, self.block_size)
        for i in range(0, len(starts), batch_size):
            yield self._windows(starts[i : i + batch_size])
