"""Guards against 0 that vanish in float16, and guards that hold."""

import torch
import torch.nn.functional as F
from torch import nn

EPS = 1e-8


def embed(model: nn.Module, batch):
    with torch.inference_mode():
        features = model(batch).half()
    features = features / (features.norm(dim=-1, keepdim=True) + 1e-8)  # expect: eps-vanishes
    return features


def index_of(vectors: torch.Tensor, queries: torch.Tensor):
    vectors = F.normalize(vectors.to(torch.float16), dim=-1)  # expect: eps-vanishes
    queries = queries.half()
    scores = F.cosine_similarity(queries[:, None], vectors[None], dim=-1)  # expect: eps-vanishes
    return scores.topk(5)


def weighted(values, weights):
    w = weights.half()
    total = w.sum(dim=1).clamp(min=1e-10)  # expect: eps-vanishes
    return (values.half() * w).sum(1) / total, torch.log(w + EPS)  # expect: eps-vanishes


# Look-alikes


def in_float32(features: torch.Tensor):
    half = features.half()
    full = half.float()
    return full / (full.norm(dim=-1, keepdim=True) + 1e-8), F.normalize(half.float(), dim=-1)


def large_enough(features: torch.Tensor):
    x = features.half()
    return F.normalize(x, dim=-1, eps=1e-4), x / (x.norm(dim=-1, keepdim=True) + 1e-6), x.clamp(min=1e-7)


def under_autocast(model: nn.Module, x):
    with torch.autocast("cuda"):
        features = model(x).half()
        return F.normalize(features, dim=-1)


def cast_at_the_end(features: torch.Tensor):
    return F.normalize(features, dim=-1).half(), (features.norm(dim=-1) + 1e-8).half()


def bfloat16(features: torch.Tensor):
    x = features.to(torch.bfloat16)
    return x / (x.norm(dim=-1, keepdim=True) + 1e-8)


def sometimes(features: torch.Tensor, fp16: bool):
    if fp16:
        features = features.half()
    return F.normalize(features, dim=-1)
