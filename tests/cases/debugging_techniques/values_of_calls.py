"""What calls return: other numbers of values than are unpacked, which raises; probabilities of bounded scores."""

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


class Bounded(nn.Module):
    """Scores that are bounded are probabilities after a softmax all the same."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return torch.softmax(torch.tanh(self.head(x)), dim=1)  # expect: softmax-before-cross-entropy


def fit(loader):
    net = Bounded()
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
