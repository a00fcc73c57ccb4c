"""What does not fit is skipped, with and without somebody looking."""

import torch
from torch import nn


def load(model: nn.Module, path):
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"], strict=False)  # expect: mismatch-swallowed
    return model


class Runner:
    def __init__(self, net: nn.Module, path):
        self.net = net
        self.net.load_state_dict(torch.load(path), strict=False)  # expect: mismatch-swallowed


# Look-alikes.


class Head(nn.Module):
    def load_state_dict(self, state, strict=True):
        super().load_state_dict(state, strict=False)


def looked_at(model: nn.Module, path, strict):
    result = model.load_state_dict(torch.load(path), strict=False)
    assert not result.missing_keys, result
    missing, unexpected = model.load_state_dict(torch.load(path), strict=False)
    print(missing, unexpected)
    print(model.load_state_dict(torch.load(path), strict=False))
    model.load_state_dict(torch.load(path), strict=strict)
    model.load_state_dict(torch.load(path))


def adapters(model: nn.Module, lora_path):
    model.load_state_dict(torch.load(lora_path), strict=False)


def load_backbone(model: nn.Module, path):
    model.load_state_dict(torch.load(path), strict=False)
