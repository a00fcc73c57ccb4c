"""What is on an accelerator, and what a loop takes out of rows."""

from __future__ import annotations

import pytest

from torchtriage.examine.source.devices import Devices
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.spans import spans


@pytest.mark.parametrize(
    ("code", "moved"),
    [
        ("net = nn.Linear(2, 2)\nnet.to('cuda')\nuse(net)", True),
        ("def f(net, device='cuda'):\n    net.to(device)\n    use(net)", True),
        ("def f(net, device):\n    net.to(device)\n    use(net)", False),
        ("def make():\n    return {'g': nn.Linear(2, 2).cuda()}\ns = make()\nuse(s['g'])", True),
        ("def make():\n    return {'g': nn.Linear(2, 2), 'd': nn.Linear(2, 2).cuda()}\ns = make()\nuse(s['g'])", False),
        ("p.add_argument('--device', default='cuda')\nx = x.to(args.device)\nuse(x)", True),
        ("p.add_argument('--device', default='cpu')\nx = x.to(args.device)\nuse(x)", False),
        ("a, b = (torch.randn(3, device='cuda') for _ in range(2))\nuse(b)", True),
        (
            "class T:\n    def __init__(self, net):\n        self.net = net.cuda()\n    def f(self):\n        use(self.net)",
            True,
        ),
    ],
)
def test_what_is_moved_is_known_wherever_it_is_kept(code: str, moved: bool) -> None:
    script = Script("places.py", f"import torch\nfrom torch import nn\n{code}\n".encode())
    (use,) = script.calls("use")
    assert Devices(script).is_moved(use.node.args[0], use.scope) is moved


@pytest.mark.parametrize(
    ("loop", "made"),
    [
        ("for name, x in [('a', torch.optim.SGD(p)), ('b', torch.optim.SGD(q))]:", 2),
        ("for x, name in [('a', torch.optim.SGD(p))]:", 0),
        ("for i, x in enumerate([torch.optim.SGD(p)]):", 1),
        ("for net, x in zip(nets, [torch.optim.SGD(p)]):", 1),
    ],
)
def test_a_loop_takes_its_names_from_rows(loop: str, made: int) -> None:
    script = Script("rows.py", f"import torch\n{loop}\n    use(x)\n".encode())
    (use,) = script.calls("use")
    assert len(script.roles.made(use.node.args[0], use.scope, "optimizer")) == made


_TIMER = b"""
import time


class Timer:
    def start(self):
        self.begin = time.perf_counter()

    def stop(self):
        now = time.perf_counter()
        return now - self.begin


class Block:
    def __enter__(self):
        self.begin = time.time()
        return self

    def __exit__(self, *error):
        self.seconds = time.time() - self.begin


def use(model, x):
    timer = Timer()
    model.warm(x)
    timer.start()
    model.first(x)
    print(timer.stop())
    with Block() as block:
        model.second(x)
    print(block.seconds)
"""


def test_a_class_that_keeps_the_first_reading_is_a_timer() -> None:
    found = [{call.tail for call in span.calls()} for span in spans(Script("timer.py", _TIMER))]
    assert sorted(sorted(each & {"warm", "first", "second"}) for each in found) == [["first"], ["second"]]
