"""Parts of a dictionary that are restored by their names, without the scaler."""

import os

import torch
from torch import nn


def build(width):
    net = nn.Linear(width, 1).cuda()
    return {"net": net, "optim": torch.optim.AdamW(net.parameters()), "scaler": torch.amp.GradScaler("cuda")}


def resume(parts, path):
    ck = torch.load(path, map_location="cpu", weights_only=True)  # expect: checkpoint-incomplete
    for name in ("net", "optim"):
        parts[name].load_state_dict(ck[name])
    return ck["step"]


def main(draw, steps, path="run.ckpt"):
    parts = build(8)
    net, optim, scaler = parts["net"], parts["optim"], parts["scaler"]
    step = resume(parts, path) if os.path.exists(path) else 0
    while step < steps:
        x, y = draw(step)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(net(x), y)
        optim.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optim)
        scaler.update()
        step += 1
        if step % 500 == 0:
            states = {"net": parts["net"].state_dict(), "optim": parts["optim"].state_dict()}
            torch.save({**states, "step": step}, path + ".tmp")
            os.replace(path + ".tmp", path)
