"""What a base class leaves to its subclasses."""

import torch
import torch.nn.functional as F
from torch import nn


class Recipe(nn.Module):
    def shared_step(self, batch):
        raise NotImplementedError


class Denoise(Recipe):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def shared_step(self, batch):
        noisy, clean = batch
        out = self.net(noisy)
        return {"loss": F.mse_loss(out, clean), "level": out.mean()}


class Engine:
    def run(self, recipe: Recipe, loader):
        opt = torch.optim.Adam(recipe.parameters())
        for _ in range(5):
            logs = []
            for batch in loader:
                logs.append(self._one(recipe, batch, opt))  # expect: graph-retained
            print(torch.stack([each["level"] for each in logs]).mean())

    def run_lightly(self, recipe: Recipe, loader):
        opt = torch.optim.Adam(recipe.parameters())
        for _ in range(5):
            logs = []
            for batch in loader:
                result = self._one(recipe, batch, opt)
                logs.append({key: value.detach() for key, value in result.items()})
            print(torch.stack([each["level"] for each in logs]).mean())

    @staticmethod
    def _one(recipe, batch, opt):
        opt.zero_grad()
        result = recipe.shared_step(batch)
        result["loss"].backward()
        opt.step()
        return result
