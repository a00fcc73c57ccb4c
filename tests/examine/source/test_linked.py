"""What a training file imports from files beside it is looked up there, and only that."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchtriage import triage
from torchtriage.examine.source.files import Means
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.seen import Memory, look
from torchtriage.examine.source.text import Elsewhere

TRAINS = "loss.backward()\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


def script(path: Path) -> Script:
    return Script(path.as_posix(), path.read_bytes())


HELPERS = """
import torch
from torch import nn


def used(model):
    return model


@torch.no_grad()
def decorated(
    model,
    batch,
):

    return model(batch)


class Net(nn.Module):
    def forward(self, x):
        # a comment
        return x


def twice():
    return 1


def twice():
    return 2


text = '''
def quoted():
    pass
'''

if torch.cuda.is_available():
    def sometimes():
        pass
last = used
"""


@pytest.mark.parametrize(
    ("imported", "used", "line"),
    [
        ("from helpers import used", "used(m)", 6),
        ("import helpers", "helpers.used(m)", 6),
        ("import helpers as h", "h.used(m)", 6),
        ("from helpers import used as u", "u(m)", 6),
        ("from helpers import decorated", "decorated(m, b)", 11),
        ("from helpers import Net", "Net(3)", 19),
        ("from .helpers import Net", "Net(3)", 19),
        ("from . import helpers", "helpers.Net(3)", 19),
        ("from ..package.helpers import Net", "Net(3)", 19),
        ("from package.helpers import Net", "Net(3)", 19),
        ("import package.helpers", "package.helpers.Net(3)", 19),
        ("from package import Net", "Net(3)", 19),
        ("from package.inner import Other", "Other(3)", None),
        (f"import {'a' * 300}", "absent()", None),
        ("from helpers import twice", "twice()", None),
        ("from helpers import sometimes", "sometimes()", None),
        ("from helpers import last", "last()", None),
        ("from helpers import absent", "absent()", None),
        ("from broken import used", "used()", None),
        ("from missing import used", "used()", None),
        ("from circle import round", "round()", None),
        ("from torch import used", "used()", None),
        ("from train import used", "used()", None),
    ],
)
def test_what_is_imported_is_found_in_its_file(tmp_path: Path, imported: str, used: str, line: int | None) -> None:
    write(tmp_path, {
        "pyproject.toml": "", "package/__init__.py": "from .helpers import Net\n", "package/helpers.py": HELPERS,
        "package/inner/__init__.py": "", "package/inner.py": "\nfrom .helpers import Net\n\n\nclass Other(Net):\n    pass\n",
        "package/broken.py": "def used(:\n    pass\n", "package/circle.py": "from circle import round\n",
        "package/torch.py": HELPERS, "package/train.py": f"{imported}\nx = {used}\n{TRAINS}",
    })  # fmt: skip
    made = script(tmp_path / "package/train.py")
    call = next(made.calls(used.partition("(")[0].rpartition(".")[2]))
    found = made.trace.definition(call.node.func, call.scope)
    assert (found.node.lineno if found is not None else None) == line  # type: ignore[attr-defined]
    assert found is None or isinstance(found.node.lineno, Elsewhere)  # type: ignore[attr-defined]


def test_the_bases_and_helpers_of_a_class_are_found_beside_it(tmp_path: Path) -> None:
    write(tmp_path, {
        "nets.py": """
            from torch import nn
            class Base(nn.Module):
                def fit(self):
                    return make(self)
            class Deep(Base):
                pass
            def make(model):
                import torch
                return torch.optim.SGD(model.parameters())
        """,
        "train.py": f"from nets import Deep\nmodel = Deep()\nopt = model.fit()\nuse(model, opt)\n{TRAINS}",
    })  # fmt: skip
    made = script(tmp_path / "train.py")
    call = next(made.calls("use"))
    roles = [[part.role for part in made.roles.parts(each, call.scope)] for each in call.arguments]
    assert roles == [["model"], ["optimizer"]]


def test_a_file_above_the_project_is_not_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"helpers.py": HELPERS, "project/.git": "", "project/train.py": f"from helpers import used\n{TRAINS}used()"},
    )
    made = script(tmp_path / "project/train.py")
    assert made.names.definition("used", made.facts.scopes[0]) is None


def test_a_file_that_trains_nothing_reads_no_other(tmp_path: Path) -> None:
    write(tmp_path, {"helpers.py": HELPERS, "model.py": "import torch\nfrom helpers import used\nused()"})
    assert not script(tmp_path / "model.py").links.is_any


LOOP = """
import torch
from torch import nn
from helpers import update

model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(9, 4, 2):
    loss = model(x).sum()
    loss.backward()
    update(optimizer)
"""


def slugs(path: Path) -> list[tuple[str, str, int | None]]:
    return [(each.fault.slug, Path(item.place.path or "").name, item.place.line)
            for each in triage.check([path]).findings for item in each.evidence]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("optimizer.step()\n    optimizer.zero_grad()", []),
        ("optimizer.step()", [("gradients-not-zeroed", "train.py", 10)]),
        ("pass", [("step-missing", "train.py", 10)]),
        ("other.update(optimizer)", []),
    ],
)
def test_only_what_the_other_file_does_not_do_is_missing(
    tmp_path: Path, body: str, found: list[tuple[str, str, int]]
) -> None:
    write(tmp_path, {"train.py": LOOP, "helpers.py": f"import other\n\ndef update(optimizer):\n    {body}\n"})
    assert slugs(tmp_path / "train.py") == found


MODEL = "from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n\n\ndef make():\n    return Net()\n"


def test_what_another_file_makes_plays_its_part(tmp_path: Path) -> None:
    train = "import torch\nfrom nets import make\nnet = make()\nloss.backward()\ntorch.save(net, 'net.pt')\n"
    write(tmp_path, {"train.py": train, "nets.py": MODEL})
    assert slugs(tmp_path / "train.py") == [("whole-object-saved", "train.py", 5)]
    (tmp_path / "nets.py").unlink()
    assert slugs(tmp_path / "train.py") == []


@pytest.mark.parametrize("nets", [MODEL + "def other():\n    global make\n", "from zoo import make\n" + MODEL])
def test_a_name_that_is_only_mentioned_again_is_what_it_was(tmp_path: Path, nets: str) -> None:
    train = "import torch\nfrom nets import make\nnet = make()\nloss.backward()\ntorch.save(net, 'net.pt')\n"
    write(tmp_path, {"train.py": train, "nets.py": nets})
    assert slugs(tmp_path / "train.py") == [("whole-object-saved", "train.py", 5)]


@pytest.mark.parametrize(
    "nets",
    [
        MODEL + "make = wrap(make)\n",
        MODEL + "if fast:\n    def make():\n        return {}\n",
        MODEL + "try:\n    from fast import make\nexcept ImportError:\n    pass\n",
        MODEL + "from zoo import *\n",
        MODEL.replace("def make", "@state\ndef make"),
        MODEL.replace("def make", "@state(\n    1,\n)\ndef make"),
        MODEL.replace("def make", "@state  # why\n# this\ndef make"),
        MODEL.replace("def make", "text = '''\ndef make") + "'''\nmake = dict\n",
    ],
)
def test_a_name_that_may_stand_for_something_else_is_unknown(tmp_path: Path, nets: str) -> None:
    train = "import torch\nfrom nets import make\nnet = make()\nloss.backward()\ntorch.save(net, 'net.pt')\n"
    write(tmp_path, {"train.py": train})
    (tmp_path / "nets.py").write_text(nets)
    assert slugs(tmp_path / "train.py") == []


@pytest.mark.parametrize(
    "nets",
    [
        "\ufeff" + MODEL,
        "import torch\n" + MODEL.replace("def make", "@torch.no_grad()\ndef make"),
        MODEL.replace("\n", "\r\n"),
        MODEL + "@a\n" * 2_000 + "def last():\n    pass\n",
    ],
    ids=["byte order mark", "harmless decorator", "line ends of Windows", "many decorators"],
)
def test_a_definition_is_found_whatever_stands_around_it(tmp_path: Path, nets: str) -> None:
    train = "import torch\nfrom nets import make\nnet = make()\nloss.backward()\ntorch.save(net, 'net.pt')\n"
    write(tmp_path, {"train.py": train})
    (tmp_path / "nets.py").write_bytes(nets.encode())
    assert slugs(tmp_path / "train.py") == [("whole-object-saved", "train.py", 5)]


def test_a_package_comes_before_a_file_of_its_name(tmp_path: Path) -> None:
    train = "import torch\nfrom nets import make\nnet = make()\nloss.backward()\ntorch.save(net, 'net.pt')\n"
    write(tmp_path, {"train.py": train, "nets.py": MODEL, "nets/__init__.py": "def make():\n    return {}\n"})
    assert slugs(tmp_path / "train.py") == []


def test_what_was_seen_is_forgotten_when_a_file_appears_that_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = "import torch\nfrom nets import make\nnet = make()\nloss.backward()\ntorch.save(net, 'net.pt')\n"
    write(tmp_path, {"one/train.py": train, "two/train.py": train, "two/nets.py": MODEL})
    means = Means(memory=Memory([], tmp_path / "home"))
    counts = []
    for folder in ("one", "two", "one"):
        monkeypatch.chdir(tmp_path / folder)
        counts.append(len(triage.check(["train.py"], means=means).findings))
    (tmp_path / "one/nets.py").write_text(MODEL)
    counts.append(len(triage.check(["train.py"], means=means).findings))
    assert counts == [0, 1, 0, 1]


def test_a_relative_import_does_not_leave_the_project(tmp_path: Path) -> None:
    train = "import torch\nfrom ..nets import make\nnet = make()\nloss.backward()\ntorch.save(net, 'net.pt')\n"
    write(tmp_path, {"nets.py": MODEL, "project/pyproject.toml": "", "project/train.py": train})
    assert slugs(tmp_path / "project/train.py") == []


def test_what_was_seen_is_forgotten_when_a_linked_file_changes(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": LOOP, "helpers.py": "def update(optimizer):\n    optimizer.step()\n"})
    path, memory = tmp_path / "train.py", Memory([], tmp_path / "home")
    rules = tuple(triage.detectors("rules"))
    seen = look(path.as_posix(), path.read_bytes(), rules)
    assert [Path(file).name for file, _ in seen.linked] == ["helpers.py"]
    memory.keep(path.as_posix(), path.read_bytes(), seen)
    assert memory.recall(path.as_posix(), path.read_bytes()) == seen
    (tmp_path / "helpers.py").write_text("def update(optimizer):\n    optimizer.step()\n    optimizer.zero_grad()\n")
    assert memory.recall(path.as_posix(), path.read_bytes()) is None
    (tmp_path / "helpers.py").unlink()
    assert memory.recall(path.as_posix(), path.read_bytes()) is None
    assert triage.check([path], means=Means(memory=memory)).measurements["files"] == 1


def test_a_line_of_another_file_says_so() -> None:
    line = Elsewhere(12, "src/helpers.py")
    assert f"line {line}" == "line 12 of helpers.py"
    assert (line, str(line), line + 1) == (12, "12 of helpers.py", 13)


def test_no_edit_is_made_for_a_place_in_another_file(tmp_path: Path) -> None:
    write(tmp_path, {"helpers.py": HELPERS, "train.py": f"from helpers import used\nused(1)\n{TRAINS}"})
    made = script(tmp_path / "train.py")
    call = next(made.calls("used"))
    found = made.trace.definition(call.node.func, call.scope)
    assert found is not None
    assert made.replaced("r", found.node, "x") == made.appended("r", found.node, "x") == ()
    assert made.line_above("r", found.node.lineno, "x") == made.line_removed("r", found.node.lineno) == ()  # type: ignore[attr-defined]
    assert made.source(found.node).startswith("def used(model)")
    assert made.place(found.node).path == (tmp_path / "helpers.py").as_posix()
