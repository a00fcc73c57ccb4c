# command: train.py
# options: --stop-after 13 --resume-args "--resume out/last.pt"
# complete
"""Evaluation each epoch, best weights, warm-up by hand, numpy generator, histories."""
import argparse, copy, json, os, time
import numpy as np
import torch
from torch import nn
p = argparse.ArgumentParser(); p.add_argument("--resume"); p.add_argument("--seed", type=int, default=1); args = p.parse_args()
def evaluate(model, loader):
    model.eval(); total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y).item()
    model.train()
    return total / len(loader)
def main():
    t0 = time.time()
    torch.manual_seed(args.seed); rng = np.random.default_rng(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    X = torch.randn(60, 4); Y = X @ torch.randn(4, 1)
    tr = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X[:48], Y[:48]), 8, shuffle=True, generator=g)
    va = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X[48:], Y[48:]), 6)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.AdamW(model.parameters(), 1e-2)
    best, best_state, start, n_iter, history = float("inf"), None, 0, 0, []
    os.makedirs("out", exist_ok=True)
    if args.resume:
        c = torch.load(args.resume, weights_only=False)
        model.load_state_dict(c["model"]); opt.load_state_dict(c["opt"]); start = c["epoch"]; best = c["best"]; n_iter = c["n_iter"]
        rng.bit_generator.state = c["np"]; g.set_state(c["g"]); torch.set_rng_state(c["t"])
        best_state = c["best_state"]
    n_seen = 0
    for epoch in range(start, 4):
        running = 0.0
        for it, (x, y) in enumerate(tr):
            for group in opt.param_groups:
                group["lr"] = 1e-2 * min(1.0, (n_iter + 1) / 10)
            x = x + torch.from_numpy(rng.normal(0, 0.01, x.shape)).float()
            out = model(x); loss = nn.functional.mse_loss(out, y)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step(); n_iter += 1; n_seen += len(x); running += loss.item()
            elapsed = time.time() - t0
        val = evaluate(model, va)
        history.append({"epoch": epoch, "val": val, "time": elapsed})
        json.dump(history, open("out/history.json", "w"))
        if val < best:
            best = val; best_state = copy.deepcopy(model.state_dict())
            torch.save(best_state, "out/best.pt")
        torch.save(dict(model=model.state_dict(), opt=opt.state_dict(), epoch=epoch + 1, best=best, n_iter=n_iter, np=rng.bit_generator.state, g=g.get_state(), t=torch.get_rng_state(), best_state=best_state), "out/last.pt")
main()
