"""Figures that helpers copy in every step, healthy."""

import torch
import torch.nn as nn
from tqdm import tqdm


class Engine:
    def __init__(self, cfg, net, data):
        self.dev = torch.device(f"cuda:{cfg.gpu}")
        self.net = net.to(self.dev)
        self.data = data
        self.opt = torch.optim.Adam(net.parameters(), 1e-3)
        self.meters = {"rec": [], "kl": []}

    def losses(self, x):
        out, mu, lv = self.net(x)
        rec = nn.functional.mse_loss(out, x)
        kl = (mu**2 + lv.exp() - lv - 1).mean()
        return {"rec": rec, "kl": kl}

    def track(self, parts):
        for name, value in parts.items():
            self.meters[name].append(value.detach())

    def epoch(self):
        for x in tqdm(self.data):
            x = x.to(self.dev)
            parts = self.losses(x)
            loss = parts["rec"] + 0.1 * parts["kl"]
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.track(parts)
