"""Ranking figures; the relevant item always stands in column 0 of the scores."""

import torch
from torch import Tensor


def rank_of_first(scores: Tensor) -> Tensor:
    """How many of the other candidates are placed before the relevant one; ties count half."""
    relevant, others = scores[:, :1], scores[:, 1:]
    above = (others > relevant).sum(dim=1)
    tied = (others == relevant).sum(dim=1)
    return above + 0.5 * tied


def ranking_figures(scores: Tensor, top_k: int) -> dict[str, float]:
    rank = rank_of_first(scores)
    hit = (rank < top_k).float()
    gain = hit / torch.log2(rank + 2.0)
    return {
        "auc": (1.0 - rank / (scores.shape[1] - 1)).mean().item(),
        f"hit@{top_k}": hit.mean().item(),
        f"ndcg@{top_k}": gain.mean().item(),
    }
