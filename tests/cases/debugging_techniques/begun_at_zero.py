"""Models whose weights all begin at 0, and those of which a part does, as it should."""

import torch
from torch import nn


def fit(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.randn(4, 4)), torch.zeros(4, 2)).backward()
        optimizer.step()


everywhere = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for parameter in everywhere.parameters():
    nn.init.zeros_(parameter)  # expect: dead-units
fit(everywhere)

by_hand = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
with torch.no_grad():
    for parameter in by_hand.parameters():
        parameter.zero_()  # expect: dead-units
fit(by_hand)

single = nn.Linear(4, 2)  # a convex problem: any start will do
nn.init.zeros_(single.weight)
fit(single)

last = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
nn.init.zeros_(last[2].weight)
fit(last)

biases = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for name, parameter in biases.named_parameters():
    if name.endswith("bias"):
        nn.init.zeros_(parameter)
fit(biases)

set_again = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for parameter in set_again.parameters():
    nn.init.zeros_(parameter)
for parameter in set_again.parameters():
    nn.init.normal_(parameter, std=0.02)
fit(set_again)
