import torch, os, torch.distributed as dist
from torch import nn
import torch.nn.parallel as par

def get_nets(cfg):
    enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
    return enc, dec

def prepare(cfg, dev):
    enc, dec = get_nets(cfg)
    enc_d = par.DistributedDataParallel(enc)
    dec_d = par.DistributedDataParallel(dec)
    for m in (enc_d, dec_d):
        m.to(dev)  # expect: moved-after-wrapping
    return enc_d, dec_d
