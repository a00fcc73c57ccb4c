# step: 1
# phase: data
# cause: data-order

import torch
from torch import nn
from torch.nn import functional as F


class Squares(torch.utils.data.Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        value = self.names[index] / 64
        return torch.tensor([value, value * value]), torch.tensor([value**3])


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
generator = torch.Generator()
generator.seed()
loader = torch.utils.data.DataLoader(Squares(range(64)), 8, shuffle=True, generator=generator)
for epoch in range(2):
    for features, aims in loader:
        loss = F.mse_loss(model(features), aims)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
