"""Several networks under their keys in one ModuleDict."""

import torch
import torch.nn.functional as F
from torch import nn

__all__ = ["clip_loss", "extract", "retrieval_recall", "train_epoch"]


def clip_loss(img, txt, log_scale):
    logits = log_scale.exp() * F.normalize(img, dim=-1) @ F.normalize(txt, dim=-1).t()
    labels = torch.arange(len(logits), device=logits.device)
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels))


def train_epoch(towers: nn.ModuleDict, log_scale: nn.Parameter, loader, opt, device):
    towers.train()
    seen = 0
    for batch in loader:
        opt.zero_grad(set_to_none=True)
        img = towers["image"](batch["pixels"].to(device, non_blocking=True))
        txt = towers["text"](batch["tokens"].to(device, non_blocking=True))
        clip_loss(img, txt, log_scale).backward()
        opt.step()
        with torch.no_grad():
            log_scale.clamp_(0, 4.6052)
        seen += len(img)
    return seen


@torch.inference_mode()
def extract(towers: nn.ModuleDict, loader, device):
    towers.eval()
    return torch.cat([towers["image"](b["pixels"].to(device)).cpu() for b in loader])


def retrieval_recall(towers: nn.ModuleDict, loader, device, ks=(1, 5, 10)):
    towers.eval()
    images, texts = [], []
    for batch in loader:
        images.append(F.normalize(towers["image"](batch["pixels"].to(device)), dim=-1))  # expect: eval-builds-graph
        texts.append(F.normalize(towers["text"](batch["tokens"].to(device)), dim=-1))  # expect: eval-builds-graph
    sims = torch.cat(images) @ torch.cat(texts).t()
    order = sims.argsort(dim=1, descending=True)
    truth = torch.arange(len(sims), device=sims.device).unsqueeze(1)
    rank = (order == truth).int().argmax(dim=1)
    return {f"R@{k}": (rank < k).float().mean().item() for k in ks}
