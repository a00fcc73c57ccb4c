"""Switches that two methods set, healthy."""

import torch


class Experiment:
    def __init__(self, seed):
        self.seed_all(seed)
        self.backend()

    def seed_all(self, seed):
        torch.manual_seed(seed)
        torch.backends.cudnn.deterministic = True

    def backend(self):
        torch.backends.cudnn.benchmark = False


def main():
    Experiment(3)
