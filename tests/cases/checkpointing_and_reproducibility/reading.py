"""Files that come from elsewhere are trusted, or not."""

import argparse
import os
import sys

import torch
from huggingface_hub import hf_hub_download
from torch import nn

CHECKPOINT = "runs/last.pt"


def from_the_hub(model: nn.Module, repo):
    path = hf_hub_download(repo, "pytorch_model.bin")
    state = torch.load(path, map_location="cpu", weights_only=False)  # expect: pickle-trusted
    model.load_state_dict(state)


def load_weights(model: nn.Module, path: str):
    """Whoever calls this says what is loaded."""
    with open(path, "rb") as file:
        model.load_state_dict(torch.load(file, weights_only=False)["model"])  # expect: pickle-trusted
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights")
    parser.add_argument("--folder", default="weights")
    args = parser.parse_args()
    model = nn.Linear(4, 2)
    model.load_state_dict(torch.load(args.weights, weights_only=False))  # expect: pickle-trusted
    teacher = torch.load(os.path.join(args.folder, "teacher.pt"), "cpu", weights_only=False)  # expect: pickle-trusted
    other = torch.load(f"{sys.argv[1]}.pt", weights_only=False)  # expect: pickle-trusted
    return model, teacher, other


# Look-alikes.


def by_default(model: nn.Module, path):
    model.load_state_dict(torch.load(path))
    model.load_state_dict(torch.load(path, weights_only=True))
    return torch.load("assets/table.pt", weights_only=False)


def in_the_package(model: nn.Module):
    model.load_state_dict(torch.load(CHECKPOINT, weights_only=False))
    here = os.path.join(os.path.dirname(__file__), "data.pt")
    return torch.load(here, weights_only=False)


def asked_for(path, trusted=False):
    return torch.load(path, weights_only=not trusted)
