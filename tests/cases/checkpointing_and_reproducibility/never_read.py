"""An answer that nobody reads."""

import torch
from torch import nn


def load(path):
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2)
    weights = torch.load(path, map_location="cpu", weights_only=True)
    incompatible = model.load_state_dict(weights, strict=False)  # expect: mismatch-swallowed
    model.eval()
    return model
