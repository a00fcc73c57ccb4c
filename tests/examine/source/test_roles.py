from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("code", "role"),
    [
        ("import torch\nx = torch.optim.SGD(p)\nuse(x)", "optimizer"),
        ("import torch\nx = getattr(torch.optim, name)(p, lr=1)\nuse(x)", "optimizer"),
        ("import torch\nx = getattr(library, name)(p, lr=1)\nuse(x)", None),
        ("import torch\nk = {'a': torch.optim.SGD, 'b': torch.optim.Adam}\nx = k[n](p)\nuse(x)", "optimizer"),
        ("import torch\nk = {'a': torch.optim.SGD, 'b': mine}\nx = k[n](p)\nuse(x)", None),
        ("import torch\nx = torch.optim.lr_scheduler.StepLR(o, 3)\nuse(x)", "scheduler"),
        ("import torch\nx = torch.cuda.amp.GradScaler()\nuse(x)", "scaler"),
        ("from torch import nn\nx = nn.Linear(2, 2).to(d)\nuse(x)", "model"),
        ("from torch import nn\nx = nn.CrossEntropyLoss()\nuse(x)", "criterion"),
        ("from torch import nn\nclass Net(nn.Module): ...\nclass Deep(Net): ...\nx = Deep()\nuse(x)", "model"),
        ("from torch import nn\nx = nn.Linear(2, 2)\nx = nn.parallel.DistributedDataParallel(x)\nuse(x)", "model"),
        ("import torch\ndef make():\n    return torch.optim.SGD(p)\nx = make()\nuse(x)", "optimizer"),
        ("import torch\ndef make():\n    return 1, torch.optim.SGD(p)\n_, x = make()\nuse(x)", "optimizer"),
        ("import torch\na, x = 1, torch.optim.SGD(p)\nuse(x)", "optimizer"),
        ("import torch\nclass M:\n    def __call__(self, x):\n        use(x)\n        x.step()\nm = M()\nm(torch.optim.SGD(p))", "optimizer"),
        ("import torch\nclass M:\n    def __init__(self):\n        self.o = torch.optim.SGD(p)\n"
         "def f(m: M):\n    use(m.o)", "optimizer"),
        ("import torch\nmake = lambda: torch.optim.SGD(p)\nx = make()\nuse(x)", "optimizer"),
        ("import torch\nmake = (lambda: torch.optim.SGD(p)) if a else other\nx = make()\nuse(x)", None),
        ("import torch\nx = torch.optim.SGD(p) if a else torch.optim.Adam(p)\nuse(x)", "optimizer"),
        ("import torch\nclass T:\n    def __init__(self):\n        self.x = torch.optim.SGD(p)\n"
         "    def f(self):\n        use(self.x)", "optimizer"),
        ("import torch\nclass T:\n    def __init__(self, o):\n        self.x = o\n"
         "    def f(self):\n        use(self.x)\nT(torch.optim.SGD(p))", "optimizer"),
        ("import torch\ndef f(x: torch.optim.Optimizer):\n    use(x)", "optimizer"),
        ("import torch\ndef f(x: torch.optim.Optimizer | None):\n    use(x)", "optimizer"),
        ("import torch\nfrom typing import Optional\ndef f(x: Optional[torch.nn.Module]):\n    use(x)", "model"),
        ("import torch\ndef f(x):\n    use(x)\nf(torch.optim.SGD(p))", "optimizer"),
        ("def f(optimizer):\n    optimizer.step()\n    use(optimizer)", "optimizer"),
        ("def f(optimizer):\n    use(optimizer)", None),
        ("def f(tower, o):\n    o.add(tower.parameters())\n    use(tower)", "model"),
        ("def f(criterion, o):\n    o.add(criterion.parameters())\n    criterion(a)\n    use(criterion)", "criterion"),
        ("import torchvision\nx = torchvision.models.resnet18(weights=None)\nuse(x)", "model"),
        ("import torchvision\nx = torchvision.models.list_models()\nuse(x)", None),
        ("from transformers import AutoModelForMaskedLM as A\nx = A.from_pretrained('b')\nuse(x)", "model"),
        ("from transformers import AutoTokenizer\nx = AutoTokenizer.from_pretrained('b')\nuse(x)", None),
        ("from torch import nn\nclass VideoNet(nn.Module): ...\ndef f(video_net):\n    video_net(1)\n    use(video_net)",
         "model"),
        ("from torch import nn\nclass Levels(nn.Module): ...\ndef f(levels=8):\n    use(levels)", None),
        ("import timm\nx = timm.create_model('b')\nuse(x)", "model"),
        ("def f(thing):\n    thing.step()\n    use(thing)", None),
        ('import torch\nd = {"a": 1, "x": torch.optim.SGD(p)}\nuse(d["x"])', "optimizer"),
        ('import torch\ndef make():\n    return dict(a=1, x=torch.optim.SGD(p))\nd = make()\nuse(d["x"])', "optimizer"),
        ('import torch\nd = {"a": 1, **more, "x": torch.optim.SGD(p)}\nuse(d["x"])', None),
        ('import torch\nd = {"a": torch.optim.SGD(p)}\nuse(d["x"])', None),
        ("import torchvision\nx = torchvision.models.segmentation.fcn_resnet50(num_classes=2)\nuse(x)", "model"),
        ("from torchvision.models import ResNet18_Weights\nx = ResNet18_Weights.DEFAULT.transforms()\nuse(x)", None),
        ("import timm\nx = timm.create_model('vit_small_patch16_224', pretrained=True)\nuse(x)", "model"),
        ("from transformers import AutoModel\nx = AutoModel.from_pretrained(name)\nuse(x)", "model"),
        ("from transformers import AutoTokenizer\nx = AutoTokenizer.from_pretrained(name)\nuse(x)", None),
        ("import torch\nx = torch.zeros(3)\nuse(x)", None),
        ("import numpy as torch\nx = torch.optim.SGD(p)\nuse(x)", None),
        ("x = x\nuse(x)", None),
        ("def f(a):\n    return g(a)\ndef g(a):\n    return f(a)\nuse(f(1))", None),
    ],
)  # fmt: skip
def test_a_role_follows_from_where_a_value_comes_from(reads, code: str, role: str | None) -> None:
    script = reads(code)
    call = next(script.calls("use"))
    parts = script.roles.parts(call.node.args[0], call.scope)
    assert {part.role for part in parts} == ({role} if role else set())


def test_asking_twice_gives_the_same_answer_inside_a_circle(reads) -> None:
    script = reads("import torch\na = b\nb = a if c else torch.optim.SGD(p)\nuse(a)\nuse(b)\n")
    answers = [[p.role for p in script.roles.parts(c.node.args[0], c.scope)] for c in script.calls("use")]
    assert answers[0] == answers[1] == ["optimizer"]
