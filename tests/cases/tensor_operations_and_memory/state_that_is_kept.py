"""A state whose detach() is lost."""

import torch
from torch import nn


class LM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        self.rnn = nn.LSTM(d, d)

    def forward(self, tokens, state):
        h, c = state
        h.detach()  # expect: result-dropped
        c.detach()  # expect: result-dropped
        out, state = self.rnn(self.emb(tokens), (h, c))
        return out, state
