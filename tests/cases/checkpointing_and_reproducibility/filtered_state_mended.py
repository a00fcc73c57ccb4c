"""A state that is filtered by hand and loaded without a look: as it should be."""

import torch
from torchvision.models import resnet50


def moco_init(arch_path, classes):
    model = resnet50(num_classes=classes)
    checkpoint = torch.load(arch_path, map_location="cpu")
    state_dict = checkpoint["state_dict"]
    for k in list(state_dict.keys()):
        if k.startswith("module.encoder_q") and not k.startswith("module.encoder_q.fc"):
            state_dict[k[len("module.encoder_q.") :]] = state_dict[k]
        del state_dict[k]
    msg = model.load_state_dict(state_dict, strict=False)
    assert set(msg.missing_keys) == {"fc.weight", "fc.bias"}
    return model
