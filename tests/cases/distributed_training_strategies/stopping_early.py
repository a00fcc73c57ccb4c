import os, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
class EarlyStopping:
    def __init__(self, patience, path="checkpoint.pt"):
        self.patience, self.path, self.best, self.bad = patience, path, None, 0
    def __call__(self, score, model):
        if self.best is None or score > self.best:
            self.best = score
            self.save(model)
        else:
            self.bad += 1
        return self.bad >= self.patience
    def save(self, model):
        torch.save(model.state_dict(), self.path)  # expect: every-rank-saves
def main():
    dist.init_process_group("nccl")
    r = int(os.environ["LOCAL_RANK"])
    model = DDP(nn.Linear(2, 2).to(r), device_ids=[r])
    stop = EarlyStopping(3)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for e in range(99):
        loss = model(torch.randn(4, 2, device=r)).sum()
        opt.zero_grad(); loss.backward(); opt.step()
        if stop(-loss.item(), model):
            break
main()
