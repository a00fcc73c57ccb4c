"""Results that are dropped, of values that come from elsewhere, and calls that look so."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def moved(model, loader, opt, device, criterion):
    for images, labels in loader:
        images.to(device)  # expect: result-dropped
        labels.to(device)  # expect: result-dropped
        loss = criterion(model(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()


class Attn(nn.Module):
    def forward(self, q, k, v, mask):
        scores = q @ k.transpose(-2, -1)
        scores.masked_fill(mask == 0, -1e9)  # expect: result-dropped
        w = scores.softmax(-1)
        w.to(v.dtype)  # expect: result-dropped
        return w @ v


def shaped(wave, spec):
    wave.squeeze(1)  # expect: result-dropped
    spec.unsqueeze(0)  # expect: result-dropped
    return F.l1_loss(wave, spec)


def cut_off(model, batch, teacher):
    target = teacher(batch["x"])
    target.detach()  # expect: result-dropped
    return F.mse_loss(model(batch["x"]), target)


def clipped(model):
    for p in model.parameters():
        p.clamp(-0.01, 0.01)  # expect: result-dropped
    for name, p in model.named_parameters():
        p.data.clamp(-1, 1)  # expect: result-dropped
        torch.clamp(p, -1, 1)  # expect: result-dropped


def of_a_batch(net: nn.Module, batches, device):
    for batch in batches:
        batch["wave"].float()  # expect: result-dropped
        batch.to(device)
        net(batch["wave"])


def bounded(rets, values):
    gains = rets - values
    gains.clamp(-5, 5)  # expect: result-dropped
    return gains.mean()


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def keep_small(self):
        self.scale.data.clamp(0, 1)  # expect: result-dropped


def no_tensors(parts, stream, canvas, device, x):
    for part in parts:
        part["encoder"].to(device)
        x = part["encoder"](x)
    stream.detach()
    stream.write(str(x))
    canvas.view(1)
    canvas.squeeze()
    return canvas


def in_place(scores, mask):
    scores.masked_fill_(mask, 0.0)
    torch.clamp(scores, 0, 1, out=scores)
    return scores
