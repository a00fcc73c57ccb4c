"""A loop that adds one at a place that another tensor names."""

import torch
import torch.nn.functional as F
from torch import nn


def degrees(edge_index, num_nodes):
    deg = torch.zeros(num_nodes, device=edge_index.device)
    for e in range(edge_index.size(1)):  # expect: python-loop-over-tensor
        deg[edge_index[1, e]] += 1
    return deg.clamp(min=1)


class MeanConv(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.own = nn.Linear(fin, fout)
        self.other = nn.Linear(fin, fout, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index
        msg = torch.zeros_like(x).index_add_(0, dst, x[src])
        msg = msg / degrees(edge_index, x.size(0)).unsqueeze(1)
        return self.own(x) + self.other(msg)


class SAGE(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.convs = nn.ModuleList(MeanConv(a, b) for a, b in zip(dims, dims[1:]))

    def forward(self, x, edge_index):
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i + 1 < len(self.convs):
                x = F.dropout(F.relu(x), 0.5, training=self.training)
        return x


def synthetic(n=2000, m=10000, classes=4):
    y = torch.randint(0, classes, (n,))
    x = F.one_hot(y, classes).float() @ torch.randn(classes, 32) + torch.randn(n, 32)
    train_mask = torch.rand(n) < 0.3
    return x, torch.randint(0, n, (2, m)), y, train_mask


torch.manual_seed(0)
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x, edges, y, mask = (t.to(dev) for t in synthetic())
gnn = SAGE([32, 64, 4]).to(dev)
optim = torch.optim.Adam(gnn.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(1, 101):
    gnn.train()
    optim.zero_grad()
    loss = F.cross_entropy(gnn(x, edges)[mask], y[mask])
    loss.backward()
    optim.step()
    if epoch % 20 == 0:
        gnn.eval()
        with torch.no_grad():
            hit = gnn(x, edges).argmax(1) == y
        print(epoch, hit[mask].float().mean().item(), hit[~mask].float().mean().item())
