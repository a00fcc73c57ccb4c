import os, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from tqdm import tqdm
def train(model, loader, optimizer, sched, args):
    model.train()
    for step, batch in enumerate(tqdm(loader)):
        update = (step + 1) % args.gradient_accumulation_steps == 0 or step + 1 == len(loader)
        if not update:
            with model.no_sync():
                (model(batch["x"].cuda()).mean() / args.gradient_accumulation_steps).backward()
            continue
        loss = model(batch["x"].cuda()).mean() / args.gradient_accumulation_steps
        loss.backward()
        optimizer.step()
        sched.step()
        optimizer.zero_grad()
def main(args):
    dist.init_process_group("nccl")
    net = DDP(nn.Linear(8, 8).cuda())
    opt = torch.optim.AdamW(net.parameters())
    train(net, args.loader, opt, torch.optim.lr_scheduler.StepLR(opt, 1), args)
