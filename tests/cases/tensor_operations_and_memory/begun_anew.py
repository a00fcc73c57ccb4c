"""Names that begin anew in each outer iteration."""

import torch
from torch import nn

G = nn.Linear(8, 784)
opt = torch.optim.Adam(G.parameters())
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 784)), batch_size=8)
for epoch in range(10):
    for i, (images,) in enumerate(loader):
        fake = G(torch.randn(8, 8))
        loss = fake.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    fake = fake.reshape(fake.size(0), 1, 28, 28)


def task(db, K):
    net = nn.Linear(4, 5)
    crit = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(net.parameters())
    for x, y in db:
        for i in range(K):
            loss = crit(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        loss += crit(net(x), y)
    print(loss.item())
