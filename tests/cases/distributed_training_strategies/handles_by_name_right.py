import torch, torch.distributed as dist
def reduce_all(model):
    handles = {}
    for n, p in model.named_parameters():
        handles[n] = dist.all_reduce(p.grad, async_op=True)
    for h in handles.values():
        h.wait()
    for p in model.parameters():
        p.grad /= dist.get_world_size()
