"""Seeds: torch's alone while Python and NumPy draw in the main process."""

import argparse
import os
import random

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset


def set_seed(seed):
    os.environ["PYTHONHASHSEED"] = str(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True


class Images(Dataset):
    """Its draws are made in workers, which the loader seeds."""

    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, index):
        return self.paths[index], random.random() + np.random.rand()


def mixup(x, y, alpha=0.2):
    lam = np.random.beta(alpha, alpha)  # expect: seeds-incomplete
    order = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[order], y, y[order], lam


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    set_seed(args.seed)
    port = random.randint(10000, 20000)
    files = sorted(os.listdir("images"))
    random.shuffle(files)  # expect: seeds-incomplete
    held, rest = train_test_split(files)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(Images(rest), num_workers=4):
        x, first, second, lam = mixup(x, y)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), first)
        loss.backward()
        optimizer.step()
    show(held)
    return port


def show(files):
    print(np.random.choice(files))


if __name__ == "__main__":
    main()
