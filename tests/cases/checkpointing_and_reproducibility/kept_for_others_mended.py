"""States that an object and a closure keep as copies."""

import torch
from torch import nn


class Recorder:
    best = -1.0

    def consider(self, score, net: nn.Module):
        if score <= self.best:
            return
        self.best = score
        self.kept = {k: v.clone() for k, v in net.state_dict().items()}


def stopper(patience):
    best = {"score": None, "weights": None, "bad": 0}

    def update(net, score):
        if best["score"] is None or score > best["score"]:
            best.update(score=score, weights={k: v.clone() for k, v in net.state_dict().items()}, bad=0)
        else:
            best["bad"] += 1
        return best["bad"] >= patience

    def restore(net):
        net.load_state_dict(best["weights"])

    return update, restore


def fit(net, loader, val, recorder):
    opt = torch.optim.RAdam(net.parameters())
    update, restore = stopper(3)
    for _ in range(30):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()
        recorder.consider(val(net), net)
        if update(net, val(net)):
            break
    restore(net)


def main(loader, val):
    net, recorder = nn.Linear(4, 1), Recorder()
    fit(net, loader, val, recorder)
    torch.save(recorder.kept, "best.pt")
