"""Sentences of a made-up language, with persons and places marked in the BIO scheme.

Names are ambiguous: the same words stand in persons, in places and outside of both. The word in
front of a name (a title, a preposition) or the one behind it (a verb, a noun) tells which it is.
"""

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
IGNORE = -100
PAD = 0

FILLERS = range(1, 61)
NAMES = range(61, 101)
TITLES = range(101, 107)
PREPOSITIONS = range(107, 113)
VERBS = range(113, 119)
LANDMARKS = range(119, 125)
ARTICLES = range(125, 128)
VOCAB_SIZE = 128

Batch = dict[str, Tensor]


class SentenceWriter:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def pick(self, words: range, count: int = 1) -> list[int]:
        return self.rng.integers(words.start, words.stop, count).tolist()

    def cue(self, words: range) -> list[int]:
        """A word that tells what the name beside it is; now and then an unrelated one stands there."""
        return self.pick(FILLERS if self.rng.random() < 0.08 else words)

    def name(self) -> list[int]:
        return self.pick(NAMES, int(self.rng.integers(1, 4)))

    def phrase(self) -> tuple[list[int], list[int]]:
        """A part of a sentence and its tags."""
        kind = self.rng.integers(0, 6)
        name = self.name()
        inside = [2] * (len(name) - 1)
        if kind == 0:
            return self.cue(TITLES) + name, [0, 1, *inside]
        if kind == 1:
            return name + self.cue(VERBS), [1, *inside, 0]
        inside = [4] * (len(name) - 1)
        if kind == 2:
            return self.cue(PREPOSITIONS) + name, [0, 3, *inside]
        if kind == 3:
            return name + self.cue(LANDMARKS), [3, *inside, 0]
        if kind == 4:
            return self.cue(ARTICLES) + name, [0] * (len(name) + 1)
        return self.pick(FILLERS, 2), [0, 0]

    def sentence(self) -> tuple[list[int], list[int]]:
        words, tags = self.pick(FILLERS), [0]
        for _ in range(int(self.rng.integers(2, 6))):
            for part, part_tags in (self.phrase(), (self.pick(FILLERS), [0])):
                words += part
                tags += part_tags
        return words, tags


class TaggedSentences(Dataset):
    def __init__(self, count: int, seed: int) -> None:
        writer = SentenceWriter(np.random.default_rng(seed))
        self.sentences = [writer.sentence() for _ in range(count)]

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, index: int) -> tuple[list[int], list[int]]:
        return self.sentences[index]


def collate(sentences: list[tuple[list[int], list[int]]], width: int = 32) -> Batch:
    """Pads to a fixed width, so that predictions of several batches can be put together."""
    words = torch.tensor([words + [PAD] * (width - len(words)) for words, _ in sentences])
    tags = torch.tensor([tags + [IGNORE] * (width - len(tags)) for _, tags in sentences])
    lengths = torch.tensor([len(words) for words, _ in sentences])
    return {"words": words, "tags": tags, "lengths": lengths}
