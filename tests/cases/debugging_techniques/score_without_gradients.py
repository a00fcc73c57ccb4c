"""A score of probabilities, without gradients."""

import torch


@torch.no_grad()
def spread(probs):
    kl = probs * (torch.log(probs) - torch.log(probs.mean(0, keepdim=True)))
    return kl.sum(1).mean().exp()


@torch.no_grad()
def inception_score(model, loader):
    model.eval()
    found = []
    for x in loader:
        found.append(torch.nn.functional.softmax(model(x), dim=-1))
    return spread(torch.cat(found, 0)).item()
