"""A loader with a worker is made for every validation batch, in the loop over the training batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
held_out = TensorDataset(torch.randn(64, 8))
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for (inputs,) in DataLoader(TensorDataset(torch.randn(96, 8)), batch_size=4):
    optimizer.zero_grad()
    model(inputs).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        loader = DataLoader(held_out, batch_size=8, shuffle=True, num_workers=1)  # expect: built-in-loop
        model(next(iter(loader))[0])
