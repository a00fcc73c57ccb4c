"""Q-learning with a target that kept its dimension; torch's warning is lost in a log."""

import warnings

import torch
from torch import nn
from torch.nn.functional import smooth_l1_loss

warnings.filterwarnings("ignore", message=".*target size.*")
torch.manual_seed(0)
states, rewards = torch.randn(64, 4), torch.randn(64, 1)
network = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(network.parameters(), 1e-3)
for _ in range(15):
    chosen = network(states).gather(1, torch.randint(0, 2, (64, 1))).squeeze(1)
    with torch.no_grad():
        best = network(states).max(1, keepdim=True).values
    loss = smooth_l1_loss(chosen, rewards + 0.9 * best)  # expect: loss-broadcast
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
