"""A call whose values are unpacked into more names than there are: it raises, and no name is any of the values."""

import torch
from torch import nn


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.criterion = nn.NLLLoss()

    def compute(self, x, y):
        scores = torch.log_softmax(self.head(x), dim=1)
        _, predicted = torch.max(scores, dim=1)
        return self.criterion(scores, y), predicted.view(-1)


model = Judge()
optimizer = torch.optim.Adam(model.parameters())
for x, y in [(torch.randn(4, 8), torch.randint(3, (4,))) for _ in range(5)]:
    loss_a, loss_b, first, second = model.compute(x, y)
    loss = loss_a + loss_b
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
