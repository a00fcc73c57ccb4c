import torch
from torch.utils.data import DataLoader


def naive(x, y):
    out = torch.zeros(x.size(0), y.size(0))
    for i in range(x.size(0)):
        for j in range(y.size(0)):
            out[i, j] = (x[i] - y[j]).norm()
    return out


def test_cdist():
    x, y = torch.randn(5, 3), torch.randn(6, 3)
    torch.testing.assert_close(torch.cdist(x, y), naive(x, y))
