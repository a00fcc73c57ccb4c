# command: train.py
# options: --stop-after 10 --resume-args "resume=ck"
# complete
"""A scheduler that is made anew with last_epoch, no generator kept since nothing draws; sys.argv read by hand; DCP-like folder, accumulating loss."""
import sys, os, json, shutil
import torch
from torch import nn
opts = dict(a.split("=") for a in sys.argv[1:])
torch.manual_seed(0)
data = torch.randn(24, 5); target = data.sum(1, keepdim=True)
net = nn.Linear(5, 1); lr0 = 0.05
opt = torch.optim.Adam(net.parameters(), lr=lr0)
step, last = 0, -1
total_loss = 0.0
if "resume" in opts:
    d = opts["resume"]
    names = sorted(n for n in os.listdir(d) if n.startswith("step"))
    d = os.path.join(d, names[-1])
    net.load_state_dict(torch.load(os.path.join(d, "net.bin")))
    opt.load_state_dict(torch.load(os.path.join(d, "opt.bin")))
    meta = json.load(open(os.path.join(d, "meta.json"))); step = meta["step"]; last = step - 1
    total_loss = meta["total_loss"]
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda n: 0.95 ** n, last_epoch=last) if last < 0 else None
if sched is None:
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda n: 0.95 ** n, last_epoch=last)
while step < 18:
    k = step % 6
    x, y = data[4 * k: 4 * k + 4], target[4 * k: 4 * k + 4]
    opt.zero_grad(); loss = nn.functional.mse_loss(net(x), y); loss.backward(); opt.step(); sched.step(); step += 1
    total_loss += loss.item()
    if step % 4 == 0:
        tmp = f"ck/.tmp{step}"; os.makedirs(tmp, exist_ok=True)
        torch.save(net.state_dict(), tmp + "/net.bin"); torch.save(opt.state_dict(), tmp + "/opt.bin")
        json.dump({"step": step, "total_loss": total_loss}, open(tmp + "/meta.json", "w"))
        os.rename(tmp, f"ck/step{step:04d}")
        for old in sorted(os.listdir("ck"))[:-2]: shutil.rmtree("ck/" + old)
