"""Both branches broadcast, one of them where there are other ranks."""

import torch
import torch.distributed as dist


class Evaluator:
    def __init__(self, distributed: bool = False, device=None):
        self.distributed = distributed
        self.device = device
        self.values = []

    def evaluate(self) -> float:
        if not self.distributed or dist.get_rank() == 0:
            score = sum(self.values) / len(self.values)
            if self.distributed:
                dist.broadcast(torch.tensor(score, device=self.device), 0)
        else:
            score = torch.tensor(0.0, device=self.device)
            dist.broadcast(score, 0)
            score = score.item()
        return score
