"""An LSTM on sequences of different lengths, packed."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Tagger(nn.Module):
    def __init__(self, kind: type[nn.RNNBase] = nn.LSTM) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16, padding_idx=0)
        self.recurrent = kind(16, 24, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
        self.head = nn.Linear(48, 5)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True)
        return self.head(states)


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 10, (6,), generator=source)
    tokens = pad_sequence([torch.randint(1, 20, (int(each),), generator=source) for each in lengths], batch_first=True)
    return tokens, lengths, torch.where(tokens > 0, tokens % 5, -100)


def train(device: str, kind: type[nn.RNNBase] = nn.LSTM, steps: int = 6) -> list[float]:
    torch.manual_seed(0)
    model = Tagger(kind).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
    losses = []
    for step in range(steps):
        tokens, lengths, tags = batch(step)
        tokens, tags = tokens.to(device), tags.to(device)
        optimizer.zero_grad()
        scores = model(tokens, lengths)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        right = (scores.argmax(-1) == tags)[tags >= 0].float().mean()
        print(f"step {step}: loss {losses[-1]:.3f}, accuracy {right:.2f}")  # noqa: T201
    return losses
