"""Ones that are joined with an image of the host before both are moved."""

import torch
import util
from torch import nn


def main(paths: list, level: float, device: torch.device):
    model = nn.Conv2d(4, 3, 3).to(device)
    model.eval()
    for path in paths:
        image = util.read(path)
        noise = torch.ones((1, 1, image.size(2), image.size(3))).mul_(level)
        image = torch.cat((image, noise), dim=1)
        image = image.to(device)
        with torch.no_grad():
            print(model(image).mean())
