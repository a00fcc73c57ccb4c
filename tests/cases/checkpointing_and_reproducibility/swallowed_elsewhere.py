"""Keys that do not fit, by other ways into a model."""

import torch
from safetensors.torch import load_file
from torch import nn
from torch.hub import load_state_dict_from_url


class Finetuned(nn.Module):
    def __init__(self, weights=None):
        super().__init__()
        self.trunk = nn.Linear(3, 3)
        self.head = nn.Linear(3, 1)
        if weights is not None:
            self.adopt(torch.load(weights, map_location="cpu", weights_only=True))

    def adopt(self, tensors):
        self.load_state_dict(tensors, strict=False)  # expect: mismatch-swallowed

    def forward(self, x):
        return self.head(self.trunk(x))


def build(url):
    model = Finetuned()
    _ = model.load_state_dict(load_state_dict_from_url(url), strict=False)  # expect: mismatch-swallowed
    model.load_state_dict(load_file("w.safetensors"), strict=False)  # expect: mismatch-swallowed
    return model


def kept(model: nn.Module, path):
    state = {k.removeprefix("net."): v for k, v in torch.load(path, weights_only=True).items()}
    model.load_state_dict(state, strict=False)  # expect: mismatch-swallowed


# Look-alikes.


def of_this_process(model: nn.Module, other: nn.Module):
    model.load_state_dict(other.state_dict(), strict=False)


def put_together(model: nn.Module, tensors):
    state = {}
    for name, tensor in tensors:
        state[name] = nn.Parameter(tensor)
    model.load_state_dict(state, strict=False)


def asked(path):
    model = Finetuned()
    report = model.load_state_dict(torch.load(path, weights_only=True), strict=False)
    if report.missing_keys:
        raise RuntimeError(report.missing_keys)
    return model
