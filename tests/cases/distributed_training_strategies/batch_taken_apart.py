import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
class Trainer:
    def __init__(self, net, data, device="cuda"):
        self.device = device
        self.net = net.to(self.device)
        self.loss_fn = nn.MSELoss()
        self.opt = torch.optim.Adam(self.net.parameters())
        self.loader = DataLoader(data, batch_size=16, shuffle=True)
    def _step(self, batch):
        features, target = batch
        features = features.to(self.device)
        pred = self.net(features)
        loss = self.loss_fn(pred, target)  # expect: device-mismatch
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()
    def fit(self, n):
        for _ in range(n):
            for batch in self.loader:
                self._step(batch)
Trainer(nn.Linear(3, 1), TensorDataset(torch.randn(64, 3), torch.randn(64, 1))).fit(2)
