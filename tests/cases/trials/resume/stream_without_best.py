# command: train.py 40
# options: --stop-after 17
# expect: resume-differs best-metric
"""Steps without epochs, batches drawn by hand, a schedule by hand, weights kept by their names and as averages."""

import json
import pathlib
import random
import sys
from types import SimpleNamespace

import torch
from torch import nn


class Shadow:
    def __init__(self, model, decay):
        self.decay = decay
        self.values = {name: each.detach().clone() for name, each in model.named_parameters()}

    def update(self, model):
        for name, each in model.named_parameters():
            self.values[name].mul_(self.decay).add_(each.detach(), alpha=1 - self.decay)


def train(steps):
    torch.manual_seed(0)
    run = SimpleNamespace(step=0, kl_weight=0.0, best_score=-1.0)
    pool = torch.randn(64, 5, generator=torch.Generator().manual_seed(9))
    order = random.Random(4)
    model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 20))
    ema_weights = Shadow(model, 0.95)
    file = pathlib.Path("run") / "state.pt"
    file.parent.mkdir(exist_ok=True)
    if file.exists():
        saved = torch.load(file, weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        warm.load_state_dict(saved["warm"])
        ema_weights.values = saved["ema"]
        order.setstate(saved["order"])
        run.step = saved["step"]
        run.kl_weight = saved["kl_weight"]
        torch.set_rng_state(saved["rng"])
    while run.step < steps:
        picked = [order.randrange(64) for _ in range(8)]
        batch = pool[picked]
        out = model(batch + 0.1 * torch.randn_like(batch))
        loss = nn.functional.mse_loss(out, batch) + run.kl_weight * out.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm.step()
        ema_weights.update(model)
        run.step += 1
        run.kl_weight = min(0.5, run.kl_weight + 0.01)
        run.best_score = max(run.best_score, -loss.item())
        if run.step % 7 == 0:
            torch.save({
                "model": model.state_dict(), "optimizer": optimizer.state_dict(), "warm": warm.state_dict(),
                "ema": ema_weights.values, "order": order.getstate(), "step": run.step, "kl_weight": run.kl_weight,
                "best_score": run.best_score, "rng": torch.get_rng_state(),
            }, file)
        with open("run/log.jsonl", "a") as log:
            log.write(json.dumps({"step": run.step, "loss": loss.item()}) + "\n")


train(int(sys.argv[1]))
