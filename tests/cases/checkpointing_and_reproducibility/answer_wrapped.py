"""What load_state_dict returns, given to a wrapper."""

import torch
from torch import nn


def build(path, device):
    state = torch.load(path, map_location=device)
    model = nn.LSTM(4, 4)
    model = torch.compile(model.load_state_dict(state))  # expect: state-dict-not-called
    return model.to(device)
