import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
def optimise(model, opt, loss, max_norm):
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # expect: clip-on-sharded
    opt.step()
    opt.zero_grad(set_to_none=True)
    return norm
def train(model: FullyShardedDataParallel, opt, loader):
    for x in loader:
        print(optimise(model, opt, model(x.cuda()).mean(), 1.0))
