"""float16 regions by decorator, by name, in a method and under a flag, with nothing that scales."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Lit:
    def __init__(self, net, device):
        self.net = net.to(device)
        self.opt = torch.optim.Adam(self.net.parameters(), 1e-3)
        self.device = device

    def training_step(self, batch):
        x, y = batch
        with torch.autocast(device_type="cuda", dtype=torch.float16):
            pred = self.net(x)
            loss = F.l1_loss(pred, y)
        return loss

    def fit(self, loader, epochs):
        for _ in range(epochs):
            for batch in loader:
                loss = self.training_step(batch)
                self.opt.zero_grad()
                loss.backward()  # expect: scaler-missing
                self.opt.step()


def train(model, loader, optimizer, amp=True):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.amp.autocast("cuda", enabled=amp, dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: scaler-missing
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    @torch.autocast("cuda")
    def forward(self, x):
        return self.fc(x)


def deco(loader):
    net = Net().cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in loader:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()  # expect: scaler-missing
        opt.step()


AMP_DTYPE = torch.float16


def const(loader, model, optimizer):
    amp_ctx = torch.autocast(device_type="cuda", dtype=AMP_DTYPE)
    for x, y in loader:
        optimizer.zero_grad()
        with amp_ctx:
            loss = F.mse_loss(model(x), y)
        loss.backward()  # expect: scaler-missing
        optimizer.step()
