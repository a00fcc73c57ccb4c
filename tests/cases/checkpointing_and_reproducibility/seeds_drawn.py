"""The seed itself is drawn and printed, and pictures are chosen at random; no training depends on the rest."""

import random

import torch

seed = random.randint(1, 10000)
print("seed", seed)
torch.manual_seed(seed)


def plot_some(images):
    for image in random.sample(images, 4):
        print(image)


def unused(images):
    random.shuffle(images)


plot_some([])
