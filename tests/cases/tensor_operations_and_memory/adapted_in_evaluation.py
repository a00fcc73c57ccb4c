"""Evaluations that take a gradient step themselves; one that calls a method of the model which training calls, too."""

import torch
import torch.nn.functional as F
from torch import nn


class Adapter(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.layers = nn.ModuleDict({"w": nn.Linear(wide, wide)})
        self.scale = nn.Parameter(torch.randn(wide))

    def task(self, x, y, qx, qy):
        fast = {}
        for name, layer in self.layers.items():
            fast[name] = self.scale * torch.sigmoid(layer(x.mean(0)))
        inner = F.mse_loss(x @ fast["w"], y)
        grad = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
        prediction = qx @ (fast["w"] - 0.1 * grad[0])
        return F.mse_loss(prediction, qy), prediction.data.cpu().numpy()


def test(model):
    model.eval()
    for _ in range(3):
        _, found = model.task(torch.randn(4, 8), torch.randn(4), torch.randn(4, 8), torch.randn(4))
        print(found.mean())


test(Adapter(8))


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.head = nn.Linear(16, 3)
        self.criterion = nn.NLLLoss()

    def loss_of(self, tokens, y):
        scores = torch.log_softmax(self.head(self.embed(tokens).mean(1)), dim=1)
        return self.criterion(scores, y), scores.argmax(1)


def evaluate(model, batches):
    model.eval()
    total = 0
    for tokens, y in batches:
        loss, _ = model.loss_of(tokens, y)  # expect: eval-builds-graph
        total += loss.data
    return total


print(evaluate(Judge(), [(torch.randint(100, (4, 7)), torch.randint(3, (4,))) for _ in range(5)]))
