"""Functions that are timed by a name that only holds them, healthy."""

import time

import torch


def bench(fn, iters=100):
    for _ in range(10):
        fn()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(iters):
        fn()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / iters * 1e3


a = torch.randn(4096, 4096, device="cuda")
b = torch.randn(4096, 4096, device="cuda", dtype=torch.float32)
print("fp32", bench(lambda: a @ b))
ah, bh = a.half(), b.half()
print("fp16", bench(lambda: torch.matmul(ah, bh)))
