"""random.seed() without a number asks for another run each time."""

import random

import numpy as np
import torch


def crop(signal, length):
    start = np.random.randint(0, len(signal) - length + 1)
    return signal[start : start + length]


def main():
    torch.manual_seed(0)
    random.seed()
    files = random.sample(range(100), 3)
    net = torch.nn.Linear(8, 1)
    for each in files:
        print(each, net(crop(torch.arange(64.0), 8)).item())


if __name__ == "__main__":
    main()
