import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
def optimise(model, opt, loss, max_norm):
    loss.backward()
    norm = model.clip_grad_norm_(max_norm)
    opt.step()
    opt.zero_grad(set_to_none=True)
    return norm
def train(model: FullyShardedDataParallel, opt, loader):
    for x in loader:
        print(optimise(model, opt, model(x.cuda()).mean(), 1.0))
