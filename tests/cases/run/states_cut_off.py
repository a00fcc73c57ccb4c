"""States that are carried over and cut off, unrolled and propagated at once, or kept for a window of steps."""

import torch
from torch import nn

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 1)
        self.state = None

    def forward(self, x):
        seen, state = self.cell(x, self.state)
        self.state = state.detach()
        return self.head(seen)


# Truncated back-propagation, with the state inside of the model and outside
for step_of in ("inside", "outside"):
    reader, state = Reader(), None
    optimizer = torch.optim.Adam(reader.parameters(), 1e-3)
    for _ in range(20):
        optimizer.zero_grad()
        x = torch.randn(4, 5, 8)
        if step_of == "inside":
            output = reader(x)
        else:
            seen, state = reader.cell(x, state)
            state = state.detach()
            output = reader.head(seen)
        output.pow(2).mean().backward()
        optimizer.step()

# One sequence, step by step, and one backward
cell = nn.LSTMCell(8, 16)
optimizer = torch.optim.Adam(cell.parameters(), 1e-3)
for _ in range(12):
    state = None
    total = torch.zeros(())
    for _ in range(20):
        state = cell(torch.randn(4, 8), state)
        total = total + state[0].pow(2).mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()

# A chain of states whose last three steps are propagated through again, on purpose
inward = nn.Linear(8, 16)
optimizer = torch.optim.SGD(inward.parameters(), 1e-3)
window = []
for _ in range(40):
    window = [*window[-2:], inward(torch.randn(4, 8))]
    optimizer.zero_grad()
    sum(window).pow(2).mean().backward(retain_graph=True)
    optimizer.step()

# Noise that is taken away by the same network several times before the backward
refine = nn.Linear(8, 8)
optimizer = torch.optim.Adam(refine.parameters(), 1e-3)
for _ in range(20):
    x = torch.randn(4, 8)
    for _ in range(5):
        x = x - 0.1 * refine(x)
    optimizer.zero_grad()
    x.pow(2).mean().backward()
    optimizer.step()
