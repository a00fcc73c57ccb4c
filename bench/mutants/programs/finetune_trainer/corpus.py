"""A synthetic corpus: documents on one of four topics, as sequences of token numbers."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

TOPICS = ("sports", "politics", "science", "travel")
PAD, CLS, SEP = 0, 1, 2
FIRST_WORD = 8
WORDS_PER_TOPIC = 20
COMMON_WORDS = 40
VOCAB_SIZE = FIRST_WORD + len(TOPICS) * WORDS_PER_TOPIC + COMMON_WORDS  # 128


def write_document(topic: int, length: int, rng: np.random.Generator) -> list[int]:
    """Nearly half of the words are on the topic, some stray from another one, the others are common."""
    other = (topic + rng.integers(1, len(TOPICS))) % len(TOPICS)
    kind = rng.choice(3, size=length, p=[0.45, 0.15, 0.4])
    rank = np.minimum(rng.geometric(0.12, size=length) - 1, WORDS_PER_TOPIC - 1)
    common = FIRST_WORD + len(TOPICS) * WORDS_PER_TOPIC + rng.integers(0, COMMON_WORDS, length)
    words = np.where(kind == 2, common, FIRST_WORD + np.where(kind == 0, topic, other) * WORDS_PER_TOPIC + rank)
    return [CLS, *words.tolist(), SEP]


class TopicDataset(Dataset):
    def __init__(self, examples: int, min_length: int, max_length: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(TOPICS), examples).tolist()
        lengths = rng.integers(min_length, max_length + 1, examples).tolist()
        self.documents = [
            write_document(topic, length, rng) for topic, length in zip(self.labels, lengths, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict:
        return {"input_ids": self.documents[index], "labels": self.labels[index]}


@dataclass
class PaddingCollator:
    """Pads the documents of a batch to the longest one, or to the next multiple of a number."""

    multiple_of: int = 8

    def __call__(self, features: list[dict]) -> dict[str, Tensor]:
        longest = max(len(feature["input_ids"]) for feature in features)
        width = -(-longest // self.multiple_of) * self.multiple_of
        rows = [feature["input_ids"] + [PAD] * (width - len(feature["input_ids"])) for feature in features]
        input_ids = torch.tensor(rows)
        return {
            "input_ids": input_ids,
            "attention_mask": (input_ids != PAD).long(),
            "labels": torch.tensor([feature["labels"] for feature in features]),
        }
