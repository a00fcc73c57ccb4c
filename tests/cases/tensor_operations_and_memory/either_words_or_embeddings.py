"""A model that refuses both of two inputs, or none, as those of transformers do."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(100, 8)
        self.layer = nn.Linear(8, 8)

    def forward(
        self,
        words: torch.Tensor | None = None,
        embeddings: torch.Tensor | None = None,
        memory: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ):
        if (words is None) ^ (embeddings is not None):
            raise ValueError("give words or embeddings")
        if embeddings is None:
            embeddings = self.words(words)
        hidden = self.layer(embeddings)
        if self.config.attends_to_memory and memory is not None and memory_mask is not None:
            if memory_mask.dim() == 2:
                memory_mask.unsqueeze(1)  # expect: result-dropped
            hidden = hidden + (memory * memory_mask).sum(1, keepdim=True)
        return hidden


class Generator(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.decoder = Decoder(config)
        self.head = nn.Linear(8, 100)

    def forward(
        self,
        words: torch.Tensor | None = None,
        embeddings: torch.Tensor | None = None,
        memory: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ):
        return self.head(self.decoder(words, embeddings, memory, memory_mask))


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(100, 8)
        self.layer = nn.Linear(8, 8)

    def forward(self, words: torch.Tensor | None = None, embeddings: torch.Tensor | None = None, mask=None):
        if words is not None and embeddings is not None:
            raise ValueError("give words or embeddings")
        elif words is not None:
            shape = words.shape
        elif embeddings is not None:
            shape = embeddings.shape[:-1]
        else:
            raise ValueError("give words or embeddings")
        if embeddings is None:
            embeddings = self.words(words)
        if mask is None:
            mask = torch.ones(*shape, 1).to(embeddings.device)  # expect: created-then-moved
        return self.layer(embeddings) * mask
