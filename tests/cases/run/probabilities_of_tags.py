"""Tags of a sequence, as probabilities that the model works out by hand, in a cross entropy over (N, classes, length)."""

import torch
from torch import nn

torch.manual_seed(0)


class Tags(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.tag = nn.Linear(8, 4)

    def forward(self, words):
        raised = self.tag(self.words(words)).exp()
        return raised / raised.sum(-1, keepdim=True)


model = Tags()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(40):
    words = torch.randint(0, 20, (8, 6))
    given = model(words)
    loss = nn.functional.cross_entropy(given.transpose(1, 2), words % 4)  # expect: softmax-before-cross-entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
