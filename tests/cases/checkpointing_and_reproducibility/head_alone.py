"""Of the state of a whole model the entries of its head."""

from torch import nn


class WithValueHead(nn.Module):
    def __init__(self, base: nn.Module):
        super().__init__()
        self.base = base
        self.v_head = nn.Linear(8, 1)
        nn.init.normal_(self.v_head.weight, std=0.2)

    def post_init(self, state_dict):
        for k in list(state_dict.keys()):
            if "v_head." in k:
                state_dict[k.replace("v_head.", "")] = state_dict.pop(k)
        self.v_head.load_state_dict(state_dict, strict=False)
        del state_dict
