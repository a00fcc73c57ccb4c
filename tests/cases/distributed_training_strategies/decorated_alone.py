import functools, os, torch, torch.distributed as dist
def rank_zero_only(fn):
    @functools.wraps(fn)
    def inner(*a, **k):
        if dist.get_rank() == 0:
            return fn(*a, **k)
    return inner
@rank_zero_only
def save(model, path):
    torch.save(model.state_dict(), path)
    dist.barrier()  # expect: collective-on-some-ranks
def train(model, epochs):
    for e in range(epochs):
        save(model, f"{e}.pt")
