"""A path from a configuration file: as it should be."""

import sys

import torch
import yaml
from torch import nn

cfg = yaml.safe_load(open(sys.argv[1]))
net = nn.Linear(3, 3)
state = torch.load(cfg["pretrained"], map_location="cpu", weights_only=True)
net.load_state_dict(state)
