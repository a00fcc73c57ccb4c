"""A token that the vocabulary has and the table has not; the run ends with an error.  # exits: 1"""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.positions = nn.Embedding(8, 16)
        self.words = nn.Embedding(words, 16)
        self.out = nn.Linear(16, 3)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        hidden = self.positions(places) + self.words(tokens)  # expect: index-out-of-range step 12 module words
        return self.out(hidden.mean(1))


torch.manual_seed(0)
tokens = torch.randint(0, 50, (160, 8))
tokens[100, 4] = 50
tags = tokens[:, 0] % 3
model = Tagger(50)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for start in range(0, 160, 8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens[start : start + 8]), tags[start : start + 8]).backward()
    optimizer.step()
