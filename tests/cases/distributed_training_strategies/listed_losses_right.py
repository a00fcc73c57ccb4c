import os, torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
def val_step(model, batch, dev):
    x, y = batch
    return nn.functional.cross_entropy(model(x.to(dev)), y.to(dev)).item()
@torch.inference_mode()
def validation_loss(model, loader, dev):
    losses = [val_step(model, b, dev) for b in loader]
    t = torch.tensor([sum(losses), float(len(losses))], device=dev)
    dist.all_reduce(t)
    return (t[0] / t[1]).item()
def main():
    dist.init_process_group("nccl")
    dev = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    ds = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    loader = DataLoader(ds, 8, sampler=DistributedSampler(ds, shuffle=False))
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2).to(dev))
    v = validation_loss(model, loader, dev)
    if dist.get_rank() == 0:
        print(v)
main()
