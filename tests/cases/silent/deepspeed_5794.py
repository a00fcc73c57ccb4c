"""Experts on two ranks: one of them skips an exchange when it has no tokens for the other, and both wait for ever."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
router, expert = nn.Linear(8, world), nn.Linear(8, 8)
optimizer = torch.optim.Adam([*router.parameters(), *expert.parameters()], 1e-3)


def exchanged(tokens, counts):
    given = torch.tensor(counts)
    taken = torch.empty_like(given)
    dist.all_to_all_single(taken, given)
    if counts[1 - rank] == 0:
        return tokens  # nothing to send
    arrived = torch.empty(int(taken.sum()), 8)
    dist.all_to_all_single(arrived, tokens, taken.tolist(), counts)  # expect: collective-on-some-ranks
    return arrived


for step in range(60):
    x = torch.randn(16, 8)
    chosen = router(x).argmax(1)
    if step == 20 and rank == 0:
        chosen = torch.zeros_like(chosen)
    order = chosen.argsort()
    with torch.no_grad():
        arrived = exchanged(x[order], torch.bincount(chosen, minlength=world).tolist())
    optimizer.zero_grad()
    loss = (expert(arrived) - arrived.flip(1)).square().mean()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.detach())
dist.destroy_process_group()
