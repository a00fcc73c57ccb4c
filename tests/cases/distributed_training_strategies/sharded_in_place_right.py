import os, torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def main(steps=1000):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    tokens = torch.load("tokens.pt", weights_only=True)
    data = TensorDataset(tokens[:, :-1], tokens[:, 1:])
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 4).cuda()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    it, step, epoch = iter(loader), 0, 0
    while step < steps:
        try:
            x, y = next(it)
        except StopIteration:
            epoch += 1
            loader.sampler.set_epoch(epoch)
            it = iter(loader)
            continue
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        opt.zero_grad()
        step += 1
main()
