"""What a library of models says of devices."""

import torch


def find_device():
    # torch.set_default_device would do it for all of them
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
