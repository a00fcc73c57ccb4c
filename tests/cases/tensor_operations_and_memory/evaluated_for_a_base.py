import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from mylab.runner import BaseRunner


class Runner(BaseRunner):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def evaluate(self, loader):
        self.model.eval()
        total = 0.0
        for x, y in loader:
            total += F.mse_loss(self.model(x), y).item()
        return total


Runner(nn.Linear(2, 1)).run([DataLoader([]), DataLoader([])])
