"""Weights from an address that stands in the code."""

import torch
from torchvision.models import resnet50

URL = "https://example.org/net.pth"


def make(pretrained: bool = True) -> torch.nn.Module:
    model = resnet50()
    if pretrained:
        state = torch.hub.load_state_dict_from_url(URL, map_location="cpu")
        model.load_state_dict(state, strict=False)
    return model
