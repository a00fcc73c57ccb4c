"""Numbers that are none."""

import math

import numpy as np
import torch
from torch import nn


def watch(loss: torch.Tensor):
    if loss == float("nan"):  # expect: compared-with-nan
        raise ValueError
    if loss.item() != math.nan:  # expect: compared-with-nan
        return True
    mask = loss == torch.nan  # expect: compared-with-nan
    return mask, np.nan == loss.item(), float("NaN") != loss  # expect: compared-with-nan


def watch_right(loss: torch.Tensor, text: str):
    if loss != loss or torch.isnan(loss).any() or math.isnan(loss.item()):
        raise ValueError
    if text == "nan" or text != "NaN" or loss == float("inf"):
        return None
    assert float("nan") != float("nan")
    return torch.where(loss > 0, loss, torch.nan), loss is np.nan


class Entropy(nn.Module):
    def forward(self, p):
        return -torch.where(p > 0, p * torch.log(p), torch.zeros_like(p)).sum()  # expect: nan-gradient-where


def distance(square, x):
    root = torch.where(square > 0.0, square.sqrt(), 0.0)  # expect: nan-gradient-where
    sinc = torch.where(x == 0, 1.0, torch.sin(x) / x)  # expect: nan-gradient-where
    gamma = torch.where(x <= 0.0031, 12.9 * x, 1.055 * x ** (-0.4) - 0.055)  # expect: nan-gradient-where
    return root, sinc, gamma


def twice_guarded(square, x, beta, p):
    safe = torch.where(square > 0, square, 1.0)
    root = torch.where(square > 0, safe.sqrt(), 0.0)
    held = torch.where(square > 0, square.clamp(min=1e-12).sqrt(), 0.0)
    smooth = torch.where(x < beta, 0.5 * x**2 / beta, x - 0.5 * beta)
    other = torch.where(x > 0, torch.log(p), p)
    with torch.no_grad():
        weights = torch.where(x != 0, 1 / x, 0.0)
    return root, held, smooth, other, weights, torch.where(x > 0, x**2, x**0), torch.where(x > 0)
