"""The names that source tells, beside those of the installed torch."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from torch import nn

from torchtriage.core.errors import TriageError
from torchtriage.examine.source.parameters.layers import CONTAINERS, FREE
from torchtriage.examine.source.parameters.models import Model, Models, models, read
from torchtriage.examine.source.script import Script

HEAD = "import copy\nfrom collections import OrderedDict\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


def told(source: str, more: str = "") -> Models:
    files = [("train.py", source), ("model.py", more)]
    return models([Script(name, (HEAD + dedent(text)).encode()) for name, text in files if text])


def model(source: str, name: str = "Net", more: str = "") -> Model:
    return next(each for each in told(source, more).models if each.name == name)


def real(source: str) -> list[str]:
    """The names that torch gives after SOURCE was run; it makes a model."""
    space: dict[str, Any] = {"__name__": "train"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(HEAD + dedent(source), space)  # source of this file
    return [name for name, _ in space["model"].named_parameters()]


def init(body: str) -> str:
    lines = (
        f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n{indent(dedent(body), ' ' * 8)}"
    )
    return f"{lines}\n\nmodel = Net()\n"


LAYERS = [
    *(f"nn.Linear(3, 4{flag})" for flag in ("", ", bias=False", ", False", ", bias=True")),
    *(f"nn.Conv{d}d(2, 4, 3{flag})" for d in (1, 2, 3) for flag in ("", ", bias=False", ", 1, 0, 1, 1, False")),
    *(
        f"nn.ConvTranspose{d}d(2, 4, 3{flag})"
        for d in (1, 2, 3)
        for flag in ("", ", bias=False", ", 1, 0, 0, 1, False")
    ),
    *(f"nn.BatchNorm{d}d(4{flag})" for d in (1, 2, 3) for flag in ("", ", affine=False", ", 1e-5, 0.1, False")),
    *(f"nn.InstanceNorm{d}d(4{flag})" for d in (1, 2, 3) for flag in ("", ", affine=True", ", 1e-5, 0.1, True")),
    *(f"nn.GroupNorm(2, 4{flag})" for flag in ("", ", affine=False", ", 1e-5, False")),
    *(
        f"nn.LayerNorm(4{flag})"
        for flag in ("", ", elementwise_affine=False", ", bias=False", ", 1e-5, False", ", 1e-5, True, False")
    ),
    "nn.SyncBatchNorm(4)",
    *(f"nn.RMSNorm(4{flag})" for flag in ("", ", elementwise_affine=False")),
    "nn.Embedding(10, 4, padding_idx=0)",
    "nn.EmbeddingBag(10, 4)",
    "nn.PReLU()",
    *(f"nn.Bilinear(2, 3, 4{flag})" for flag in ("", ", bias=False", ", False")),
    *(
        f"nn.{kind}(3, 4{layers}{both}{bias})"
        for kind, layers, both, bias in itertools.product(
            ("LSTM", "GRU", "RNN"), ("", ", 2", ", num_layers=3"), ("", ", bidirectional=True"), ("", ", bias=False")
        )
    ),
    "nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True)",
    "nn.LSTM(3, 4, 2, True, False, 0.0, True, 2)",
    "nn.RNN(3, 4, 2, 'relu', False)",
    "nn.GRU(3, 4, 2, False)",
    *(f"nn.{kind}Cell(3, 4{flag})" for kind in ("LSTM", "GRU", "RNN") for flag in ("", ", bias=False", ", False")),
    *(
        f"nn.MultiheadAttention(4, 2{flags})"
        for flags in ("", ", bias=False", ", add_bias_kv=True", ", kdim=4, vdim=4", ", kdim=3", ", vdim=5, bias=False")
    ),
    *(
        f"nn.Transformer{kind}Layer(4, 2{flag})"
        for kind in ("Encoder", "Decoder")
        for flag in ("", ", bias=False", ", 8, activation=F.gelu", ", activation='gelu'")
    ),
    "nn.TransformerEncoderLayer(4, 2, activation=nn.PReLU())",
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 3)",
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(d_model=4, nhead=2), num_layers=2, norm=nn.LayerNorm(4))",
    "nn.TransformerEncoder(encoder_layer=nn.TransformerEncoderLayer(4, 2), num_layers=2)",
    "nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2), 2)",
    "nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))",
    "nn.Sequential(OrderedDict([('a', nn.Linear(2, 2)), ('b', nn.Linear(2, 2))]))",
    "nn.Sequential(OrderedDict(a=nn.Linear(2, 2), b=nn.Linear(2, 2)))",
    "nn.Sequential(*[nn.Linear(2, 2) for _ in range(3)], nn.Tanh())",
    "nn.Sequential(*(nn.Conv2d(i, o, 3) for i, o in [(1, 2), (2, 3)]))",
    "nn.ModuleList([nn.Linear(2, 2) for _ in range(4)])",
    "nn.ModuleList(nn.Linear(i, i, bias=i > 1) for i in range(1, 4))",
    "nn.ModuleList([nn.ModuleList([nn.Linear(1, 1) for _ in range(2)]) for _ in range(2)])",
    "nn.ModuleList([None, nn.Linear(1, 1)])",
    "nn.ModuleDict({'b': nn.Linear(1, 1), 'a': nn.Linear(1, 1)})",
    "nn.ModuleDict({f'layer{i}': nn.Linear(1, 1) for i in range(2)})",
    "nn.ModuleDict([('b', nn.Linear(1, 1)), ('a', nn.PReLU())])",
    "nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(2)])",
    "nn.ParameterList([torch.zeros(1)])",
    "nn.ParameterDict({'a': nn.Parameter(torch.zeros(1)), 'b': torch.zeros(1)})",
    "nn.Linear(2, 2).to('cpu').requires_grad_(True)",
    "copy.deepcopy(nn.Linear(2, 2))",
    "[nn.Linear(2, 2)]",
    "torch.zeros(3)",
    "4",
]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_has_the_names_that_torch_gives_it(layer: str) -> None:
    source = init(f"self.first = {layer}\nself.last = nn.Linear(1, 1)\nself.own = nn.Parameter(torch.zeros(1))")
    assert model(source) == Model("Net", tuple(real(source)))


BODIES = {
    "a module's own parameters come before those of its parts": """
        self.a = nn.Linear(1, 1)
        self.w = nn.Parameter(torch.zeros(1))
        self.register_parameter("v", nn.Parameter(torch.zeros(1)))
        self.register_buffer("u", torch.zeros(1))""",
    "what is registered again keeps its place": """
        self.a = nn.Linear(1, 1)
        self.b = nn.Linear(1, 1)
        self.a = nn.PReLU()
        self.register_parameter("x", None)
        self.y = nn.Parameter(torch.zeros(1))
        self.x = nn.Parameter(torch.zeros(1))
        self.z = None
        self.z = nn.Linear(1, 1)""",
    "what is set to None or deleted is gone": """
        self.a = nn.Linear(1, 1)
        self.b = nn.Linear(1, 1)
        self.c = nn.Linear(1, 1)
        self.a = None
        del self.b""",
    "tied weights count once": """
        self.embed = nn.Embedding(4, 2)
        self.mid = nn.Linear(1, 1)
        self.head = nn.Linear(2, 4, bias=False)
        self.head.weight = self.embed.weight
        self.again = self.mid""",
    "loops over literals": """
        self.blocks = nn.ModuleList()
        for width in (1, 2):
            for index in range(2):
                self.blocks.append(nn.Linear(width, width, bias=index == 0))
        layers = []
        for i in range(3):
            layers += [nn.Linear(1, 1), nn.ReLU()]
            if i == 1:
                continue
            layers.append(nn.PReLU())
        self.net = nn.Sequential(*layers[0:2], *layers) if False else nn.Sequential(*layers)
        for i in range(2):
            setattr(self, f"fc{i}", nn.Linear(1, 1))
            self.add_module(f"m{i}", nn.Linear(1, 1))
            self.add_module("n%d" % 3, None) if False else None""",
    "settings that make no difference": """
        import os
        wide = os.environ.get("WIDE")
        if wide:
            self.act = nn.ReLU()
            self.size = 3
        else:
            self.act = nn.GELU()
            self.size = 4
        if not wide is None:
            raise ValueError
        self.a = nn.Linear(1, 1)
        self.b = nn.Conv1d(1, 1, 1) if wide else nn.Conv1d(2, 2, 2)
        with torch.no_grad():
            nn.init.zeros_(self.a.weight)
        self.c = nn.Linear(int(wide or 3), self.size)""",
    "closures, and what is no module": """
        wide = 3

        def block(count):
            self.helped = nn.PReLU()
            return nn.Sequential(nn.Linear(wide, wide), *[nn.PReLU() for _ in range(count)])

        self.b = block(2)
        self.kinds = {"relu": nn.ReLU, "gelu": nn.GELU}
        self.act = self.kinds["gelu"]()
        self.make = lambda: nn.Linear(1, 1)
        self.math = torch.arange(3).float().mean()
        self.kind = nn.Linear
        try:
            self.c = nn.Linear(1, 1)
        finally:
            self.d = nn.PReLU()
        match wide:
            case 3:
                self.e = nn.PReLU()
            case _:
                self.e = nn.PReLU(2)
        while False:
            self.f = nn.Linear(1, 1)
        if (size := wide * 2) > 4 and not size == 5:
            self.g = nn.Linear(size, -(-size // 4))
        self.h = getattr(self, "g")
        self.i = nn.ModuleList(reversed([nn.PReLU(), nn.Linear(1, 1)]))
        self.j = nn.ModuleList([nn.Linear(1, n, bias=not n) for n, _ in zip([0, 1], "ab") if n < 2])
        for index, (name, layer) in enumerate({"p": nn.PReLU(), "q": nn.Linear(1, 1)}.items()):
            setattr(self, f"{name}{index}", layer)
            if len(name) > 1:
                break""",
    "containers that grow": """
        self.seq = nn.Sequential()
        self.seq.add_module("x", nn.Linear(1, 1))
        self.seq.append(nn.Linear(1, 1))
        self.many = nn.ModuleDict()
        self.many["k"] = nn.Linear(1, 1)
        self.many.update({"l": nn.Linear(1, 1)})
        self.list = nn.ModuleList([nn.ReLU()]).extend([nn.Linear(1, 1)])
        self.list[0] = nn.PReLU()
        self.first, self.second = nn.Linear(1, 1), nn.PReLU()
        self.one = self.list[1]""",
}


@pytest.mark.parametrize("about", BODIES)
def test_an_init_is_followed_as_torch_runs_it(about: str) -> None:
    source = init(BODIES[about])
    assert model(source) == Model("Net", tuple(real(source)))


FILES = {
    "classes of the same file": """
        def conv(i, o, norm=nn.BatchNorm2d, **more):
            return nn.Sequential(nn.Conv2d(i, o, 3, bias=False, **more), norm(o), nn.ReLU())

        class Base(nn.Module):
            expansion = 2

            def __init__(self, dim, *, bias=True):
                super().__init__()
                self.gamma = nn.Parameter(torch.ones(dim))
                self.proj = nn.Linear(dim, dim, bias=bias)
                self._extra(dim)

            def _extra(self, dim):
                self.norm = nn.LayerNorm(dim)

        class Block(Base):
            def __init__(self, dim, act=nn.PReLU):
                super(Block, self).__init__(dim, bias=False)
                self.act = act()
                self.body = conv(1, 2, padding=1)

            def _extra(self, dim):
                super()._extra(dim)
                self.more = self._make(self.expansion)

            def _make(self, count):
                return nn.Sequential(*[nn.Linear(1, 1) for _ in range(count)])

        class Thin(nn.Linear):
            def __init__(self, size):
                super().__init__(size, size, bias=False)
                self.scale = nn.Parameter(torch.ones(1))

        class Same(Block):
            pass

        class Stack(nn.Sequential):
            def __init__(self, *layers):
                super().__init__(*layers, nn.PReLU())

        class Net(nn.Module):
            def __init__(self, depth=2, dim=4, norm=None):
                nn.Module.__init__(self)
                self.dim = dim
                self.blocks = nn.ModuleList([Block(self.dim, nn.ReLU if i else nn.PReLU) for i in range(depth)])
                if depth > 2:
                    self.deep = Same(dim)
                self.norm = norm(dim) if norm is not None else nn.Identity()
                self.thin = Thin(dim)
                self.stack = Stack(nn.Linear(1, 1), nn.ReLU())

        DEPTH = 3
        model = Net(DEPTH, norm=nn.LayerNorm)
    """,
}


@pytest.mark.parametrize("about", FILES)
def test_classes_and_functions_of_the_files_are_followed(about: str) -> None:
    assert model(FILES[about]) == Model("Net", tuple(real(FILES[about])))


def test_every_layer_of_torch_that_is_said_to_have_no_parameters_has_none() -> None:
    needs = dict.fromkeys(FREE, (1,))
    needs.update({name: (1, 1) for name in FREE if "LPPool" in name or name in {"Threshold", "Fold"}})
    needs.update({name: () for name in FREE if name.endswith(("Loss", "Loss2d"))})
    needs.update(dict.fromkeys(("GELU", "Softmax2d", "Softsign", "Tanh", "Tanhshrink", "Sigmoid", "LogSigmoid"), ()))
    needs.update(
        dict.fromkeys(("ReLU", "Hardtanh", "ReLU6", "SiLU", "Mish", "Hardswish", "Hardsigmoid", "SELU", "Upsample"), ())
    )
    needs.update({name: (1, 0.0) for name in FREE if name.startswith("ConstantPad")})
    needs["Unflatten"] = (1, (1, 1))
    needs.update({f"FractionalMaxPool{d}d": (2, 3) for d in (2, 3)})
    assert {name for name in FREE if list(getattr(nn, name)(*needs[name]).parameters())} == set()
    assert not FREE & CONTAINERS


UNKNOWN = {
    "make = lambda: nn.Linear(1, 1)\nself.x = make()": ("w", "make() is not known"),
    "import other\nself.x = other.backbone": ("w", "other.backbone is not known"),
    "self._modules['x'] = nn.Linear(1, 1)": ("w", "self._modules['x'] is not known"),
    "args = N\nself.x = args.norm(3)": ("w", "args.norm(3) is not known"),
    "self.x = torch.load('model.pt')": ("w", "torch.load('model.pt') is not known"),
    "many = [nn.Linear(1, 1) for _ in range(N)]\nfor each in many:\n    self.a = nn.Bilinear(1, 1, 1)\n    self.z = nn.PReLU()": (
        "w a.weight a.bias",
        "how often",
    ),
    "many = [nn.Linear(1, 1) for _ in range(N)]\nself.x = many[-1]": ("w", "many[-1] is not known"),
    "match N:\n    case 1:\n        pass\n    case 2:\n        self.x = nn.Linear(1, 1)": (
        "w a.weight a.bias",
        "it depends on N",
    ),
    "try:\n    pass\nexcept TypeError:\n    pass\nexcept ValueError:\n    self.x = nn.PReLU()": (
        "w a.weight a.bias",
        "an exception",
    ),
    "if N:\n    return": ("w", "it depends on N"),
    "setattr(self, N, nn.PReLU())": ("w", "is not known"),
    "self.x = nn.Linear(1, 1) if N else None": ("w a.weight a.bias", "it depends on N"),
    "self.x = self.a if N else nn.Linear(1, 1)": ("w a.weight a.bias", "it depends on N"),
    "self.x = build()": ("w", "train.py:12: build() is not known"),
    "import timm\nself.x = timm.create_model('a')": (
        "w a.weight a.bias",
        "train.py:13: timm.create_model('a') is not known",
    ),
    "import other\nself.x = other.Block(3)": ("w a.weight a.bias", "train.py:13: other.Block(3) is not known"),
    "import os\nfor _ in range(int(os.environ['N'])):\n    self.x = nn.Linear(1, 1)": (
        "w a.weight a.bias",
        "how often",
    ),
    "import os\nif os.environ.get('N'):\n    self.x = nn.Linear(1, 1)": (
        "w a.weight a.bias",
        "it depends on os.environ.get('N')",
    ),
    "import os\nif os.environ.get('N'):\n    self.a.weight = self.w": ("w", "it depends on"),
    "import os\nself.x = nn.Linear(1, 1, bias=bool(os.environ['N']))": ("w a.weight a.bias x.weight", "nn.Linear("),
    "import os\nself.x = nn.LSTM(1, 1, int(os.environ['N']))": (
        "w a.weight a.bias x.weight_ih_l0 x.weight_hh_l0 x.bias_ih_l0 x.bias_hh_l0",
        "nn.LSTM(",
    ),
    "self.x = nn.ModuleList([nn.Linear(1, 1) for _ in range(N)])": ("w a.weight a.bias", "how often"),
    "self.x = nn.ParameterDict({'b': torch.zeros(1), 'a': torch.zeros(1)})": ("w a.weight a.bias", "ParameterDict"),
    "self.x = nn.utils.weight_norm(nn.Linear(1, 1))": ("w", "weight_norm"),
    "nn.utils.weight_norm(self.a)": ("w", "weight_norm"),
    "register(self)": ("w", "register(self) is not known"),
    "self.x = nn.Transformer(8)": ("w a.weight a.bias", "nn.Transformer(8) is not known"),
    "try:\n    self.x = nn.Linear(1, 1)\nexcept Exception:\n    pass": ("w a.weight a.bias", "an exception"),
    "while self.a:\n    self.x = nn.Linear(1, 1)": ("w a.weight a.bias", "how often"),
}


@pytest.mark.parametrize("line", UNKNOWN)
def test_from_the_first_thing_that_cannot_be_known_on_nothing_is_told(line: str) -> None:
    found = model(
        init(f"self.w = nn.Parameter(torch.zeros(1))\nself.a = nn.Linear(1, 1)\n{line}\nself.last = nn.Linear(1, 1)")
    )
    names, why = UNKNOWN[line]
    assert found.names == tuple(names.split())
    assert why in found.unknown


def test_arguments_that_only_size_a_layer_do_not_stop_the_names() -> None:
    source = """
        class Net(nn.Module):
            def __init__(self, dim, heads: int, config, bias=True, dropout=0.1, layers=3):
                super().__init__()
                self.dim, self.heads, self.dropout = dim, heads, dropout
                self.config = config
                self.size = config.size
                self.a = nn.Linear(dim, 2 * dim)
                self.b = nn.Conv2d(config.size, dim // heads, 3)
                self.c = nn.Linear(dim, 1, bias=bias)
                self.d = nn.Linear(1, 1)
    """
    found = model(source)
    assert found.names == ("a.weight", "a.bias", "b.weight", "b.bias", "c.weight")
    assert found.unknown.startswith("train.py:")


@pytest.mark.parametrize("name", ["backbone", "config"])
def test_what_a_class_is_given_may_be_a_module(name: str) -> None:
    source = f"""
        class Net(nn.Module):
            def __init__(self, {name}):
                super().__init__()
                self.head = nn.Linear(1, 1)
                self.{name} = {name}

            def forward(self, x):
                return self.head(self.{name}(x))
    """
    assert model(source).names == ()
    assert name in model(source).unknown


def test_two_ways_of_making_a_class_tell_what_they_share() -> None:
    source = """
        class Net(nn.Module):
            def __init__(self, bias):
                super().__init__()
                self.a = nn.Linear(1, 1)
                self.b = nn.Linear(1, 1, bias=bias)

        one, other = Net(True), Net(bias=False)
    """
    found = model(source)
    assert found.names == ("a.weight", "a.bias", "b.weight")
    assert "made in several ways" in found.unknown


def test_a_module_that_is_registered_later_is_not_numbered() -> None:
    source = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(1, 1)

            def grow(self):
                self.b = nn.Linear(1, 1)
    """
    found = model(source)
    assert found.names == ("a.weight", "a.bias")
    assert "grow may register self.b" in found.unknown


def test_classes_are_followed_from_file_to_file() -> None:
    more = "class Block(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.fc = nn.Linear(n, n)\n"
    main = "from model import Block\n" + init("self.a = Block(2)\nself.b = Block(3)")
    found = told(main, more)
    assert [(each.name, each.is_part) for each in found.models] == [("Net", False), ("Block", True)]
    assert found.models[0].names == ("a.fc.weight", "a.fc.bias", "b.fc.weight", "b.fc.bias")


def test_a_circle_of_classes_ends() -> None:
    found = model(init("self.a = nn.Linear(1, 1)\nself.b = Net()"))
    assert found.names[:2] == ("a.weight", "a.bias")
    assert "too deep" in found.unknown


SEVERAL = """
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(1, 1)

    class Large(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = Small()
            self.b = Small()

    class Open(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = anything()
"""


@pytest.mark.parametrize(
    ("more", "text", "highest", "names"),
    [
        ("", "", 1, ["Large", "Open"]),
        ("", "", 4, ["Open"]),
        ("", "model = Large()", 3, ["Large"]),
        ("", "model = Larger()", 3, ["Large", "Open"]),
        ("", "x = Small()", 1, ["Large", "Open"]),
        ("    model = nn.parallel.DistributedDataParallel(Small())\n", "", 1, ["Small"]),
        (
            "    from torch.nn.parallel import DistributedDataParallel as DDP\n    m = Large().cuda()\n    m = DDP(m)\n",
            "",
            1,
            ["Large"],
        ),
    ],
)
def test_the_class_is_the_one_that_the_text_names_or_ddp_is_given_else_each_that_fits(
    more: str, text: str, highest: int, names: list[str]
) -> None:
    assert [each.name for each in told(SEVERAL + more).fitting(highest, text)] == names


@pytest.mark.parametrize(
    "line",
    [
        "model.a.weight.requires_grad = False",
        "model.requires_grad_(False)",
        "model.requires_grad_(requires_grad=False)",
        "w = nn.Parameter(torch.zeros(1), requires_grad=False)",
    ],
)
def test_frozen_parameters_are_told(line: str) -> None:
    assert told(f"model = 3\n{line}\n").frozen == "train.py:8"
    assert told("model.requires_grad_(True)\nx = torch.zeros(1, requires_grad=False)\n").frozen == ""


def test_a_path_that_cannot_be_read_or_parsed_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def (:\n")
    for path in (tmp_path / "missing.py", bad):
        with pytest.raises(TriageError, match=path.name) as raised:
            read([path])
        assert raised.value.code == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(TriageError, match="no Python file") as raised:
        read([tmp_path / "empty"])
    assert raised.value.code == 2
    (tmp_path / "empty" / "good.py").write_text(HEAD + init("self.a = nn.Linear(1, 1)"))
    assert [each.names for each in read([tmp_path / "empty"]).models] == [("a.weight", "a.bias")]


@pytest.mark.parametrize(
    "line",
    [
        "a = 2\nfor _ in range(10000):\n    a = a * a",
        "a = 'x'\nfor _ in range(10000):\n    a = a + a",
        "a = [nn.PReLU()]\nfor _ in range(10000):\n    a = a + a",
        "a = 10 ** 12 * 'x'",
        "a = 1000000000000 * 'x'",
        "a = [1 for i in range(9999) for j in range(9999) if False]",
        "for i in range(9999):\n    for j in range(9999):\n        self.a = nn.Sequential(self.a, self.a)",
        "for i in range(9999):\n    self.a = nn.Sequential(copy.deepcopy(self.a), copy.deepcopy(self.a))",
        "for i in range(9999):\n    self.a = self.a if N else nn.PReLU()",
        "self.a.loop = self",
        "self.b = " + "-".join("1" for _ in range(250)),
    ],
)
def test_source_that_is_made_to_be_long_comes_to_an_end(line: str) -> None:
    found = model(init(f"self.a = nn.PReLU()\n{line}\nself.last = nn.PReLU()"))
    assert found.names[:1] == ("a.weight",) or found.unknown
