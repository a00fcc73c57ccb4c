import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from lab.limits import Clamper, weights_of


def fit(model, loader, opt, clamper, box: "Clamper"):
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        clamper.clamp(model)
        box.clamp(0.0, 1.0)
        print(clamper.hits, box.low)
        clamper.unsqueeze(loss)
        print(clamper)
    box.reset()
    clamper.reset()
