"""Python's own meaning in an execution: what the names of a module come to, and what is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.conditions import Takes
from torchtriage.examine.source.execution.executor import Executor
from torchtriage.examine.source.execution.values import Unknown
from torchtriage.examine.source.linked import Links
from torchtriage.examine.source.script import Script


def executed(source: str, takes: Takes = "always", path: str = "job.py") -> Executor:
    script = Script(path, source.encode())
    links = Links(path, script.facts, trains=True)
    return Executor(path, script.text.parse(), links, takes=takes).execute()


KNOWN: list[tuple[str, Any]] = [
    ("r = [2 * n for n in range(3) if n != 1]", [0, 4]),
    ("a, *b = (1, 2, 3)\nr = (a, b)", (1, [2, 3])),
    ("r = {'x': 1} | {'y': 2}", {"x": 1, "y": 2}),
    ("def f(a, b=2, *c, d=4, **e):\n    return a, b, c, d, e\nr = f(1, 3, 5, d=6, g=7)", (1, 3, (5,), 6, {"g": 7})),
    ("def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n        return n\n    g()\n    return g()\nr = f()", 2),
    ("n = 0\ndef f():\n    global n\n    n = 5\nf()\nr = n", 5),
    ("class A:\n    x = 1\n    def f(self):\n        return self.x\nclass B(A):\n    x = 2\n    def f(self):\n        return super().f() + 1\nr = B().f()", 3),
    ("class A:\n    @property\n    def p(self):\n        return 7\n    @classmethod\n    def c(cls):\n        return cls.__name__\n    @staticmethod\n    def s(x):\n        return x\nr = (A().p, A.c(), A.s(3))", (7, "A", 3)),
    ("from dataclasses import dataclass, field\n@dataclass\nclass C:\n    a: int\n    b: list = field(default_factory=list)\nr = (C(1).a, C(1).b)", (1, [])),
    ("import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default='0.1')\np.add_argument('--eval', action='store_false')\nr = (p.parse_args().lr, p.parse_args().eval)", (0.1, True)),
    ("from functools import partial\nr = partial(lambda a, b: (a, b), 1)(2)", (1, 2)),
    ("from collections import defaultdict\nd = defaultdict(list)\nd['a'].append(1)\nr = d['a']", [1]),
    ("def gen():\n    yield 1\n    yield from [2, 3]\nr = []\nfor x in gen():\n    r.append(x)", [1, 2, 3]),
    ("from contextlib import contextmanager\nr = []\n@contextmanager\ndef c():\n    r.append('in')\n    yield 5\n    r.append('out')\nwith c() as x:\n    r.append(x)", ["in", 5, "out"]),
    ("class C:\n    def __enter__(self):\n        return 1\n    def __exit__(self, *e):\n        global r\n        r = (x, 'left')\nwith C() as x:\n    pass", (1, "left")),
    ("def twice(f):\n    def g(x):\n        return f(f(x))\n    return g\n@twice\ndef f(x):\n    return x + 1\nr = f(1)", 3),
    ("r = 0\ntry:\n    raise ValueError\nexcept ValueError:\n    r = 1\nfinally:\n    r += 1", 2),
    ("r = []\nfor i in range(9):\n    if i == 1:\n        continue\n    if i == 3:\n        break\n    r.append(i)", [0, 2]),
    ("match 'b':\n    case 'a':\n        r = 1\n    case 'b' | 'c':\n        r = 2", 2),
    ("r = [i for i, _ in enumerate('ab', 1)] + list(zip([1], [2]))", [1, 2, (1, 2)]),
    ("x = [1, 2, 3]\ndel x[:2]\nr = x", [3]),
    ("r = (lambda *a, k=1: (a, k))(*[1, 2], **{'k': 3})", ((1, 2), 3)),
    ("r = 'a' if not [] else 'b'", "a"),
    ("if (n := 3) > 2:\n    r = f'{n}-{n + 1}'", "3-4"),
    ("class A:\n    def __call__(self, x):\n        return x\nr = A()(4)", 4),
    ("class A:\n    pass\nclass B(A):\n    pass\nr = (isinstance(B(), A), isinstance(A(), B), isinstance(3, (str, int)))", (True, False, True)),
    ("class A:\n    x = 1\nr = (hasattr(A(), 'x'), getattr(A(), 'y', 5))", (True, 5)),
    ("a = [1]\nb = a\nb += [2]\nr = a", [1, 2]),
    ("r = max(len('ab'), 1) // 1 % 2", 0),
    ("r = [*reversed([1, 2]), sum(map(len, ['a', 'bc']))]", [2, 1, 3]),
    ("r = sum([[1], [2, 3]], [])", [1, 2, 3]),
    ("import itertools\nr = list(itertools.chain([1], (2,))) + list(itertools.chain.from_iterable([[3], [4]]))", [1, 2, 3, 4]),
    ("r = dict.fromkeys(['a', 'b'], 0)", {"a": 0, "b": 0}),
    ("from pathlib import Path\np = Path('a') / 'b'\nr = f'{p}/{3:02d}'", "a/b/03"),
    ("from yacs.config import CfgNode as CN\nc = CN()\nc.A = CN()\nc.A.LR = 0.1\nr = c.clone().A.LR", 0.1),
    ("from omegaconf import OmegaConf\nr = OmegaConf.merge(OmegaConf.create({'a': {'b': 2}}), OmegaConf.from_cli()).a.b", 2),
    ("import tyro\nfrom dataclasses import dataclass\n@dataclass\nclass C:\n    a: int = 3\nr = tyro.cli(C).a", 3),
    ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = 2\nr = (P(1).x, P(1).y)", (1, 2)),
    ("import fire\ndef main():\n    global r\n    r = 4\nfire.Fire(main)", 4),
    ("from torch.multiprocessing import spawn\ndef main(rank, x):\n    global r\n    r = x\nspawn(main, args=(5,), nprocs=2)", 5),
    ("from functools import cached_property\nn = []\nclass A:\n    @cached_property\n    def p(self):\n        n.append(1)\n        return len(n)\na = A()\nr = (a.p, a.p)", (1, 1)),
    ("def gen():\n    yield 1\n    yield 2\ng = gen()\nr = (next(g), next(g))", (1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("source", "value"), KNOWN)
def test_what_is_known_is_as_python_has_it(source: str, value: Any) -> None:
    assert executed(source).file.values["r"] == value


@pytest.mark.parametrize(
    "source",
    [
        "r = somewhere",
        "import os\nr = os.listdir('.')",
        "r = open('x').read()",
        "from nowhere import *\nr = thing",
        "r = [][0]",
        "r = 1 / 0",
        "r = {}['x']",
        "import torch\nr = torch.load('x')['y']",
    ],
)
def test_what_cannot_be_known_is_unknown(source: str) -> None:
    assert isinstance(executed(source).file.values["r"], Unknown)


CHOICE = "from x import c\nr = []\nfor i in range(3):\n    if c():\n        r.append(i)\n    if c():\n        raise ValueError\n"


@pytest.mark.parametrize(("takes", "value"), [("always", [0, 1, 2]), ("never", []), ("once", [0])])
def test_unknown_conditions_are_taken_each_way_and_guards_never(takes: Takes, value: list[int]) -> None:
    assert executed(CHOICE, takes).file.values["r"] == value


DOUBLED = "".join(
    f"b = made['{number}']\nb.setdefault('left', a)\nb.setdefault('right', a)\na = b\n" for number in range(30)
)
"""Unknown values each of which holds the one before twice: all of it, written out, takes more memory than there is."""


@pytest.mark.parametrize(
    ("source", "is_finished"),
    [
        ("while True:\n    x = 1\n", True),
        ("def f():\n    return f()\nf()\n", True),
        ("x = 'a' * 10 ** 9\ny = 9 ** 9 ** 9\nz = [0] * 10 ** 8\n", True),
        (
            "for a in range(60):\n    for b in range(60):\n        for c in range(60):\n            x = a + b\n",
            False,
        ),
        ("a = [1]\nfor i in range(60):\n    a += a\n    a.extend(a)\n", True),
        ("s = 'ab'\nfor i in range(60):\n    s = s.replace('a', s) + s\n", True),
        ("x = list(range(10 ** 12)), sum(range(10 ** 12)), set(range(10 ** 9)), sorted(range(10 ** 9))\n", True),
        ("x = 'a'.ljust(10 ** 12), 'a'.zfill(10 ** 12), '{:>999999999}'.format(1), f'{1:>999999999}'\n", True),
        ("x = '%999999999d' % 1, 'a'.__mul__(10 ** 12), [0].__mul__(10 ** 10), (1).to_bytes(10 ** 10)\n", True),
        ("x = 10 ** 60 ** 60, 1 << 10 ** 12, int('9' * 9999) ** 64, round(1.5, 10 ** 9)\n", True),
        ("x = 3\nfor i in range(99):\n    x = x * x\n    y = 7 ** x\n", True),
        ("x = {k: {k for k in range(10 ** 9)} for k in range(10 ** 9)}\n", True),
        ("x = " + "(" * 80 + "1" + ")" * 80, True),
        ("import itertools\nfor x in itertools.count():\n    pass\n", True),
        (f"import x\na = x.first()\nmade = x.made()[0]\n{DOUBLED}x.seen()[0].setdefault(a, 1)\n", True),
        ("return 1\n".replace("return 1", "raise SystemExit"), True),
    ],
)
def test_whatever_a_program_does_its_execution_ends(source: str, is_finished: bool) -> None:
    assert executed(source).is_finished is is_finished


TRAINS = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, x in enumerate(torch.utils.data.DataLoader([])):
    (model(x).mean() / 4).backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


def test_a_loop_is_followed_until_an_accumulated_step_has_come_twice() -> None:
    job = executed(TRAINS)
    steps = [each for each in job.events if isinstance(each, events.OptimizerStep)]
    assert [each.loops[-1][1] for each in steps] == [3, 7]
    assert [len(gradient.by) for each in steps for _, gradient in each.gradients] == [4, 4, 4, 4]


def test_files_of_the_project_are_executed_once_and_known_by_their_own_paths(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("seen = []\nseen.append(1)\ndef make():\n    return missing()\n")
    (tmp_path / "more.py").write_text("from parts import *\nimport parts\nagain = parts.seen\n")
    (tmp_path / "job.py").touch()
    job = executed(
        "import parts, more\nfrom more import seen\nr = (seen, parts.seen is seen)\n", path=str(tmp_path / "job.py")
    )
    assert job.file.values["r"] == ([1], True)
    assert sorted(Path(each.path).name for each in job.files.values()) == ["more.py", "parts.py"]
