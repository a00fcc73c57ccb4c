"""What DDP numbers, named from source."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchtriage import triage
from torchtriage.core.query import Decoded

LOG = """\
  File "train.py", line 30, in <module>
    {line}
RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates
Parameter indices which did not receive grad for rank 0: {numbers}
 In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out
"""
HEAD = "import torch\nfrom torch import nn\n"
NET = """
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 2)
        {more}
        self.head = nn.ModuleDict({{"main": nn.Linear(2, 2), "aux": nn.Linear(2, 2)}})
"""


def net(name: str = "Net", more: str = "self.act = nn.ReLU()") -> str:
    return NET.format(name=name, more=more)


def decoded(source: str, tmp_path: Path, numbers: str = "4 5", line: str = "loss.backward()") -> Decoded:
    (tmp_path / "train.py").write_text(HEAD + source)
    query, _ = triage.heard(LOG.format(numbers=numbers, line=line), [tmp_path / "train.py"])
    return query.decoded[0]


def test_numbers_become_names(tmp_path: Path) -> None:
    message = decoded(net(), tmp_path)
    assert message.says == "2 parameters got no gradient on rank 0: head.aux.weight (4), head.aux.bias (5) in Net"
    assert message.fields["names"] == "head.aux.weight, head.aux.bias"
    assert message.fields["model"] == "Net"
    assert message.fields["indices"] == [4, 5]


def test_a_single_parameter_is_one_and_many_are_cut(tmp_path: Path) -> None:
    assert decoded(net(), tmp_path, "3").says == "1 parameter got no gradient on rank 0: head.main.bias (3) in Net"
    more = decoded(
        net(more="self.mid = nn.Sequential(*[nn.PReLU() for _ in range(8)])"), tmp_path, "0 1 2 3 4 5 6 7 8 9"
    )
    assert more.says.endswith("mid.5.weight (7) and 2 more in Net")


def test_each_of_several_classes_is_told_but_no_more_than_three(tmp_path: Path) -> None:
    two = decoded(net("One") + net("Two", "self.two = nn.PReLU()"), tmp_path)
    assert two.says.endswith(
        "head.aux.weight (4), head.aux.bias (5) in One, or head.main.bias (4), head.aux.weight (5) in Two"
    )
    assert "names" not in two.fields
    five = decoded("".join(net(name) for name in "ABCDE"), tmp_path)
    assert five.says.endswith(
        "in A, or head.aux.weight (4), head.aux.bias (5) in B, or head.aux.weight (4), head.aux.bias (5) in C"
    )


def test_the_class_that_the_traceback_names_is_the_one(tmp_path: Path) -> None:
    said = decoded(net("One") + net("Two"), tmp_path, line="model = DDP(Two().to(rank))").says
    assert said.endswith("head.aux.weight (4), head.aux.bias (5) in Two")


def test_names_end_where_the_source_can_no_longer_tell(tmp_path: Path) -> None:
    message = decoded(
        net(more="self.backbone = timm.create_model('resnet')").replace("class", "import timm\nclass"), tmp_path, "1 4"
    )
    assert message.says.startswith(
        "2 parameters got no gradient on rank 0: body.bias (1) in Net, whose numbers from 2 on"
    )
    assert "train.py:9: timm.create_model('resnet') is not known" in message.says
    assert "names" not in message.fields
    alone = decoded(net(more="self.backbone = build()"), tmp_path)
    assert "rank 0: in Net, whose numbers from 0 on cannot be told" in alone.says


def test_a_source_without_such_a_class_says_so(tmp_path: Path) -> None:
    assert decoded(net(), tmp_path, "6").says == (
        "1 parameter got no gradient on rank 0: numbers 6, and no module class of the source has so many"
    )


def test_frozen_parameters_make_the_names_uncertain(tmp_path: Path) -> None:
    said = decoded(net() + "model = Net()\nmodel.body.weight.requires_grad = False\n", tmp_path).says
    assert "head.aux.weight (4)" in said
    assert said.endswith(
        "the source sets requires_grad to False (" + f"{(tmp_path / 'train.py').as_posix()}:11): the names may be off"
    )


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory",
        LOG.format(numbers="", line="x"),
        "Parameters which did not receive grad for rank 0: a.weight",
    ],
)
def test_what_numbers_nothing_is_left_as_it_is(text: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + net())
    assert triage.heard(text, [tmp_path / "train.py"]) == triage.heard(text)


def test_what_the_source_is_called_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    said = decoded(net(more="setattr(self, '\\x1b[31m', nn.Linear(2, 2))"), tmp_path, "2").says
    assert "?[31m.weight (2)" in said


REAL = """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(2, 2)
        self.unused = nn.Linear(2, 2)
        self.gate = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.used(x) * self.gate


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.idle = nn.PReLU()
        self.head = Head()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.head(self.stem(x)) * self.scale
"""


def message_of_ddp(source: str, frozen: str = "") -> tuple[str, list[str]]:
    """What DDP says in its second forward, and the parameters that truly got no gradient and require one."""
    space = {"torch": torch, "nn": nn, "__name__": "train"}
    exec(source, space)  # source of this file
    model: nn.Module = space["Net"]()
    if frozen:
        model.get_parameter(frozen).requires_grad = False
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        wrapped = DistributedDataParallel(model)
        wrapped(torch.ones(1, 2)).sum().backward()
        with pytest.raises(RuntimeError) as raised:
            wrapped(torch.ones(1, 2))
    finally:
        dist.destroy_process_group()
    idle = [name for name, each in model.named_parameters() if each.requires_grad and each.grad is None]
    return str(raised.value), idle


def test_the_numbers_of_ddp_itself_become_the_names_that_got_no_gradient(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + REAL)
    text, idle = message_of_ddp(REAL)
    message = triage.heard(text, [tmp_path])[0].decoded[0]
    assert message.fields["names"] == ", ".join(idle) == "idle.weight, head.unused.weight, head.unused.bias"


def test_ddp_does_not_count_a_frozen_parameter_so_that_the_names_are_said_to_be_uncertain(tmp_path: Path) -> None:
    freezing = REAL + "\n\nmodel = Net()\nmodel.scale.requires_grad = False\n"
    (tmp_path / "train.py").write_text(HEAD + freezing)
    text, idle = message_of_ddp(REAL, "scale")
    message = triage.heard(text, [tmp_path])[0].decoded[0]
    assert message.fields["names"] != ", ".join(idle)
    assert message.says.endswith("the names may be off")
