# command: train.py
# options: --stop-after 9
# complete
"""Saves on SIGTERM only, and every 100 steps; a class; itertools.count; functional model call by method."""
import itertools, os, signal, sys
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.enc = nn.Linear(3, 6); self.dec = nn.Linear(6, 3); self.calls = 0
    def loss(self, x):
        self.calls += 1
        return (self.dec(torch.tanh(self.enc(x))) - x).square().mean()
class Run:
    def __init__(self):
        torch.manual_seed(3)
        self.net = Net(); self.opt = torch.optim.SGD(self.net.parameters(), 0.1, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, 0.2, total_steps=20)
        self.stop = False; self.n = 0
        signal.signal(signal.SIGTERM, self.on_term)
    def on_term(self, *a): self.stop = True
    def save(self):
        torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(), "sched": self.sched.state_dict(), "n": self.n, "rng": torch.get_rng_state()}, "s.pt.tmp"); os.replace("s.pt.tmp", "s.pt")
    def go(self):
        if os.path.exists("s.pt"):
            s = torch.load("s.pt"); self.net.load_state_dict(s["net"]); self.opt.load_state_dict(s["opt"]); self.sched.load_state_dict(s["sched"]); self.n = s["n"]; torch.set_rng_state(s["rng"])
        for i in itertools.count():
            if self.n >= 20: break
            loss = self.net.loss(torch.randn(4, 3))
            loss.backward(); self.opt.step(); self.sched.step(); self.opt.zero_grad(); self.n += 1
            if self.stop:
                self.save(); sys.exit(0)
Run().go()
