"""Files that are downloaded, and loaded with all that is in them."""

import urllib.request
from pathlib import Path

import torch

CACHE = Path("~/.cache/encoders").expanduser()
OPTIONS = {"map_location": "cpu", "weights_only": False}


def download(name):
    target = CACHE / f"{name}.pth"
    if not target.exists():
        part = target.with_suffix(".part")
        urllib.request.urlretrieve(f"https://example.com/{name}.pth", part)
        part.rename(target)
    return target


def pretrained(name, model):
    state = torch.load(download(name), map_location="cpu", weights_only=False)  # expect: pickle-trusted
    model.load_state_dict(state["state_dict"])
    return model


def published(address, model):
    model.load_state_dict(torch.hub.load_state_dict_from_url(address, **OPTIONS))  # expect: pickle-trusted
    return model


def safely(address, model):
    model.load_state_dict(torch.hub.load_state_dict_from_url(address, weights_only=True))
    return model
