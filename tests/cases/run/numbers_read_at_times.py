"""Numbers that are read: a loss, norms, the lengths of a batch, all of an evaluation's now and then, and lists at once."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.GRU(16, 32, batch_first=True)
head = nn.Linear(32, 4)
parameters = [*model.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, 1e-3)
losses = []
for step in range(60):
    x, lengths = torch.randn(16, 24, 16), torch.randint(1, 25, (16,))
    outputs, _ = model(x)
    last = torch.stack([row[int(length) - 1] for row, length in zip(outputs, lengths)])
    loss = nn.functional.cross_entropy(head(last), x[:, 0, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    largest = max(max(each.grad.flatten().tolist()) for each in parameters)
    norms = [each.grad.norm().item() for each in parameters]
    optimizer.step()
    losses.append(loss.item())
    if step % 13 == 12:
        right = sum(bool(each) for each in (head(last).argmax(1) == x[:, 0, :4].argmax(1)).repeat(100))
