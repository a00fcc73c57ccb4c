"""Meters in a dict, and a while loop over next()."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total = self.total + value * n
        self.count += n

    @property
    def mean(self):
        return float(self.total) / max(self.count, 1)


class VAE(nn.Module):
    def __init__(self, d=784, h=256, z=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.ReLU())
        self.mu, self.logvar = nn.Linear(h, z), nn.Linear(h, z)
        self.dec = nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, d))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


torch.manual_seed(3)
device = "cuda" if torch.cuda.is_available() else "cpu"
images = torch.rand(2048, 784)
loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True, drop_last=True)
vae = VAE().to(device)
adam = torch.optim.Adam(vae.parameters(), lr=1e-3)
meters = {"rec": Meter(), "kl": Meter()}

it = iter(loader)
step, max_steps = 0, 5000
while step < max_steps:
    try:
        (x,) = next(it)
    except StopIteration:
        it = iter(loader)
        (x,) = next(it)
    x = x.to(device)
    logits, mu, logvar = vae(x)
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / x.size(0)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    adam.zero_grad(set_to_none=True)
    (rec + kl).backward()
    adam.step()
    meters["rec"].update(rec, x.size(0))  # expect: graph-retained
    meters["kl"].update(kl, x.size(0))  # expect: graph-retained
    step += 1
    if step % 500 == 0:
        print(step, {k: round(m.mean, 3) for k, m in meters.items()})
