"""Turns words into numbers and numbers into vectors."""

import torch
from torch import nn


class Vocabulary:
    """Words get numbers from 1; 0 is for padding, and one number more is for words never seen."""

    def __init__(self, words):
        self.number = {word: place for place, word in enumerate(sorted(set(words)), 1)}
        self.unknown = len(self.number) + 1

    def __len__(self):
        return len(self.number) + 1

    def encode(self, text, length=8):
        numbers = [self.number.get(word, self.unknown) for word in text.split()][:length]
        return torch.tensor(numbers + [0] * (length - len(numbers)))


def make_embedding(vocabulary, width=4):
    return nn.Embedding(len(vocabulary), width, padding_idx=0)
