"""The table of operators says what the installed torch does, and answers queries."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import torch

import torchtriage
from torchtriage.examine.source.torch_api import operators
from torchtriage.examine.source.torch_api.operators import Facts, names, parsed

ROOT = Path(torchtriage.__file__).parents[2]
TABLE = Path(operators.__file__).with_name("operators.txt")


def rows(text: str) -> dict[tuple[str, str], str]:
    """(home, name) → facts, of each line behind the first."""
    found = {}
    for line in text.splitlines()[1:]:
        name, homes, facts = line.split(" ", 2)
        for home in homes.split(","):
            assert (home, name) not in found, f"{home}.{name} stands there twice"
            found[home, name] = facts
    return found


def test_every_row_is_what_the_installed_torch_does() -> None:
    made_for = TABLE.read_text().splitlines()[0].rstrip(".").rpartition(" ")[2]
    if not torch.__version__.startswith(f"{made_for}."):
        pytest.skip(f"the table is of torch {made_for}")
    done = subprocess.run(
        [sys.executable, str(ROOT / "learn/torch_api.py"), "--print"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    kept, measured = rows(TABLE.read_text()), rows(done.stdout)
    differences = [
        f"{home}.{name}: the table says {kept.get((home, name))}, torch {measured.get((home, name))}"
        for home, name in sorted(kept.keys() | measured.keys())
        if kept.get((home, name)) != measured.get((home, name))
    ]
    assert not differences, "\n".join([*differences, "make torch-api"])


def test_the_file_is_sorted() -> None:
    lines = TABLE.read_text().splitlines()[1:]
    assert lines == sorted(lines, key=lambda line: line.split(" "))


def test_a_column_holds_only_the_values_that_its_type_names() -> None:
    types = get_type_hints(operators.Query)
    for facts in operators.operators():
        for column in ("returns", "memory", "gradient", "dtype"):
            assert getattr(facts, column) in get_args(types[column])
        assert set(facts.homes) <= set(get_args(types["home"]))
        assert set(facts.traits) <= {*get_args(types["trait"]), "-"}


def test_a_line_is_read_into_its_columns() -> None:
    assert parsed("torch,method tensor itself 0 kept same pointwise") == Facts(
        ("torch", "method"), "tensor", "itself", "0", "kept", "same", ("pointwise",)
    )


@pytest.mark.parametrize(
    ("query", "inside", "outside"),
    [
        ({"gradient": "cut", "home": "method"}, {"detach", "argmax", "item", "size", "eq"}, {"mean", "round"}),
        ({"gradient": "zero"}, {"round", "sign", "floor"}, {"relu", "abs"}),
        ({"gradient": "none"}, {"heaviside"}, {"round"}),
        ({"memory": "alias", "home": "method"}, {"view", "detach", "expand", "chunk"}, {"clone", "reshape"}),
        ({"memory": "maybe"}, {"reshape", "contiguous", "to", "cpu", "float"}, {"view", "clone"}),
        ({"memory": "itself", "home": "method"}, {"requires_grad_", "add_"}, {"add"}),
        ({"writes": "0", "home": "method"}, {"add_", "copy_", "zero_"}, {"add", "requires_grad_"}),
        ({"dtype": "bool"}, {"eq", "isnan", "bool"}, {"where"}),
        ({"dtype": "int64", "home": "method"}, {"argmax", "long", "nonzero"}, {"int"}),
        ({"dtype": "float", "home": "method"}, {"exp", "div"}, {"add", "sum"}),
        ({"trait": "factory"}, {"zeros", "tensor", "randn"}, {"zeros_like"}),
        ({"trait": "factory", "dtype": "default"}, {"zeros", "rand"}, {"randint"}),
        ({"trait": "random"}, {"dropout", "rand_like", "normal_", "multinomial"}, {"zeros"}),
        ({"trait": "sync"}, {"item", "tolist", "cpu", "nonzero", "numpy", "unique"}, {"argmax"}),
        ({"trait": "pointwise"}, {"exp", "add_"}, {"sum", "matmul"}),
        ({"trait": "reduction"}, {"sum", "amax"}, {"exp"}),
        ({"returns": "tensors", "home": "method"}, {"topk", "chunk"}, {"max"}),
        ({"returns": "either"}, {"max", "median"}, {"topk"}),
        ({"returns": "value", "home": "attribute"}, {"shape", "dtype"}, {"T"}),
        ({"returns": "tensor", "home": "attribute"}, {"T", "data", "grad"}, {"shape"}),
        ({"home": "special"}, {"expit"}, {"relu"}),
    ],
)
def test_a_query_gives_the_names_of_which_all_of_it_holds(query: dict, inside: set[str], outside: set[str]) -> None:
    found = names(**query)
    assert inside <= found
    assert not outside & found


def test_what_holds_for_no_operator_gives_nothing() -> None:
    assert names(home="attribute", trait="random") == frozenset()


def test_the_table_is_read_once_and_quickly_without_torch() -> None:
    """Less than 5 ms on an idle core: the best of several, for other processes run beside this one."""
    assert operators.operators() is operators.operators()
    spans = []
    for _ in range(20):
        operators.operators.cache_clear()
        start = time.perf_counter()
        operators.operators()
        spans.append(time.perf_counter() - start)
    assert min(spans) < 0.005
    assert TABLE.stat().st_size < 150_000
    script = "from torchtriage.examine.source.torch_api.operators import names; names(home='fft'); import sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
