import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from features import LogFilterBank


class AttentionPool(nn.Module):
    """A weighted mean over time; frames of padding get no weight."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        # a bias would cancel in the softmax
        self.score = nn.Linear(dim, 1, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.score(x).squeeze(-1).masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=1)
        return torch.einsum("bt,btd->bd", weights, x)


class KeywordSpotter(nn.Module):
    def __init__(self, frontend: LogFilterBank, n_classes: int, hidden: int = 32, dropout: float = 0.1) -> None:
        super().__init__()
        self.frontend = frontend
        self.project = nn.Sequential(nn.Linear(frontend.n_bands, hidden), nn.LayerNorm(hidden), nn.GELU())
        self.gru = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.pool = AttentionPool(2 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * hidden, n_classes)

    def forward(self, waves: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        n_frames = self.frontend.n_frames(lengths)
        x = self.project(self.frontend(waves))
        packed = pack_padded_sequence(x, n_frames, batch_first=True, enforce_sorted=False)
        hidden, _ = self.gru(packed)
        x, n_frames = pad_packed_sequence(hidden, batch_first=True)
        mask = torch.arange(x.size(1), device=x.device) < n_frames.to(x.device).unsqueeze(1)
        return self.classifier(self.dropout(self.pool(x, mask)))
