"""A contrastive loss over two views of each sample, on embeddings in half precision."""

import torch
from torch import nn


def contrastive(one, other, temperature=0.05):
    """The mean loss of finding, for each row of ONE (n, d), its own row of OTHER among all rows."""
    one = nn.functional.normalize(one, dim=-1)
    other = nn.functional.normalize(other, dim=-1)
    similarity = one @ other.T / temperature
    weights = torch.exp(similarity)
    shares = weights.diagonal() / weights.sum(1)
    return -torch.log(shares).mean()
