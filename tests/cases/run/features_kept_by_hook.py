"""Features from within the network are kept with their graphs for a plot; nothing of the output or the loss is."""

import torch
from torch import nn
from torch.nn import functional


class Taps:
    def __init__(self, layer: nn.Module):
        self.seen = {"features": [], "sizes": []}
        layer.register_forward_hook(self.catch)

    def catch(self, _module, _inputs, output):
        self.seen["sizes"].append(len(output))
        self.seen["features"].append(output)  # expect: graph-retained


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
taps = Taps(net[2])
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(60):
    x = torch.randn(32, 8)
    loss = functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(len(taps.seen["features"]))
