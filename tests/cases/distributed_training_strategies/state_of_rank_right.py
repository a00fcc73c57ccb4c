import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("nccl")
state = {"rank": dist.get_rank(), "local": int(os.environ["LOCAL_RANK"]), "world": dist.get_world_size()}
state["device"] = torch.device("cuda", state["local"])
net = DDP(torch.nn.Linear(2, 2).to(state["device"]))
