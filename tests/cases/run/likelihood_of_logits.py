"""nll_loss on the logits of a tagger: the loss falls without end."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words=50, tags=6):
        super().__init__()
        self.embed = nn.Embedding(words, 16)
        self.rnn = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, tags)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9)
for _ in range(60):
    ids = torch.randint(0, 50, (16, 10))
    scores = model(ids)
    loss = nn.functional.nll_loss(scores.reshape(-1, 6), (ids % 6).reshape(-1))  # expect: wrong-loss-input
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
