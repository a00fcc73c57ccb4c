"""The optimizer's model gets the gradients of another one, which gets its weights back."""

import torch
from torch import nn


def work(shared, batches):
    copy = nn.Linear(3, 1)
    copy.load_state_dict(shared.state_dict())
    optimizer = torch.optim.Adam(shared.parameters(), lr=1e-3)
    for x, y in batches:
        loss = nn.functional.mse_loss(copy(x), y)
        copy.zero_grad()
        loss.backward()
        for there, here in zip(shared.parameters(), copy.parameters()):
            there._grad = here.grad  # the optimizer's model gets the gradients
        optimizer.step()
        copy.load_state_dict(shared.state_dict())  # and gives its weights back


if __name__ == "__main__":
    work(nn.Linear(3, 1), [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(10)])
