"""Parts of a dictionary that are restored by their names."""

import os

import torch
from torch import nn


def build(width):
    net = nn.Linear(width, 1).cuda()
    return {"net": net, "optim": torch.optim.AdamW(net.parameters()), "scaler": torch.amp.GradScaler("cuda")}


def resume(parts, path):
    ck = torch.load(path, map_location="cpu", weights_only=True)
    for name in ("net", "optim", "scaler"):
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
            states = {name: part.state_dict() for name, part in parts.items()}
            torch.save({**states, "step": step}, path + ".tmp")
            os.replace(path + ".tmp", path)
