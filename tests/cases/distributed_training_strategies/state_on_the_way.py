import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

class GCN(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Linear(n, n)
    def forward(self, x, hidden):
        return torch.tanh(self.w(x) + hidden)

class Trainer:
    def __init__(self, args):
        self.dev = torch.device("cuda:0")
        self.model = GCN(16).to(self.dev)
        self.optim = torch.optim.Adam(self.model.parameters())
        self.loader = DataLoader(TensorDataset(torch.randn(100, 16), torch.randn(100, 16)), batch_size=10)
    def fit(self):
        for x, y in self.loader:
            x, y = x.to(self.dev), y.to(self.dev)
            h0 = torch.zeros(x.size(0), 16)
            pred = self.model(x, h0)  # expect: device-mismatch
            loss = F.mse_loss(pred, y)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
Trainer(None).fit()
