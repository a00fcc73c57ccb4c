import os, torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler
from sklearn.metrics import f1_score
from torch.nn.parallel import DistributedDataParallel as DDP
def evaluate(model, loader, device):
    model.eval()
    preds, golds = [], []
    with torch.no_grad():
        for batch in loader:
            logits = model(batch["ids"].to(device))
            preds.extend(logits.argmax(-1).cpu().tolist())  # expect: metrics-not-reduced
            golds.extend(batch["label"].tolist())
    return f1_score(golds, preds, average="macro")
def main(valid):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    vl = DataLoader(valid, 8, sampler=DistributedSampler(valid, shuffle=False))
    model = DDP(nn.Linear(4, 2).to(device), device_ids=[device.index])
    f1 = evaluate(model, vl, device)
    if dist.get_rank() == 0:
        print("F1", f1)
