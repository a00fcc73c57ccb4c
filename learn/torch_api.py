"""What the operators of the installed torch do to memory, graphs, dtypes, devices and random state, as one table.

    python learn/torch_api.py            (make torch-api)
    python learn/torch_api.py --print    to standard output
    python learn/torch_api.py --compare  what another version of torch, the one of this Python, does otherwise

Writes examine/source/torch_api/operators.txt. What schemas and tags do not say is measured: every operator is called on
tiny tensors, in a child process in an empty folder, for some end the process or write files when they are misused.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import sys
import tempfile
import typing
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch_measure import Row, elsewhere, measured
from torch_observe import shares

TABLE = Path(__file__).parents[1] / "src/torchtriage/examine/source/torch_api/operators.txt"
HOMES = {
    "torch": torch,
    "method": torch.Tensor,
    "functional": torch.nn.functional,
    "special": torch.special,
    "linalg": torch.linalg,
    "fft": torch.fft,
}
_ASIDE = re.compile(
    # settings of the process, and what reads or starts other things: calling them would change the calls after them
    r"set_(anomaly|auto|default|deter|float32|flush|num|print|rng|warn)|get_(auto|def|det|file|float|num|rng)|init_num"
    r"|use_|import_|parse_|sym_|autocast_|clear_auto|prepare_|thread_|is_(auto|anomaly|warn|deter)|are_|vmap|fork|wait"
    r"|seed|initial_seed|manual_seed|compile|load|save|cond|while_loop|from_file|apply_|map2?_|classproperty|module_load"
    r"|merge_type|unify_type|profiler_|has_torch|handle_torch|boolean_dispatch|lobpcg"
    # kernels of one backend and of quantized tensors, which no training calls by name
    r"|cudnn_|miopen_|mkldnn_|fbgemm_|native_|batch_norm_|fused_|sparse_(bs|c)|quantize|fake_q|q_|qscheme|int_repr"
    r"|choose_q|.*_copy$"
    # what only raises today
    r"|(eig|symeig|solve|lstsq|matrix_rank|reinforce|ipu)$"
)


@cache
def schemas() -> dict[str, list[Any]]:
    """The schemas of each public operator that takes tensors, or makes one."""
    found = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and not any(each.is_out for each in schema.arguments):
            found[schema.name[6:]].append(schema)
    for name, each in found.items():
        with_tensors = [one for one in each if any("Tensor" in str(part.type) for part in one.arguments)]
        found[name] = with_tensors or each
    return dict(found)


def names() -> Iterator[tuple[str, str, Any]]:
    """The home, name and object of each public function and method that may be an operator."""
    for home, owner in HOMES.items():
        for name in sorted(set(dir(owner))):
            thing = getattr(owner, name, None)
            is_public = name.startswith("_foreach_") or not name.startswith("_")
            is_known = is_public and (home == "linalg" or not _ASIDE.match(name))
            if is_known and callable(thing) and not inspect.isclass(thing) and inspect.getmodule(thing) is not typing:
                yield home, name, thing


def completed(row: Row | None, known: list[Any]) -> Row | None:
    """ROW with what the schemas KNOWN of the operator say of overloads that were not called."""
    if not known:
        return row
    returns = [[str(each.type) for each in schema.returns] for schema in known]
    kinds = {"tensor" if types == ["Tensor"] else "tensors" for types in returns if "Tensor" in "".join(types)}
    if len(kinds) == 2:
        return replace(row or Row(), returns="either")
    return row or unmeasured(kinds.pop() if kinds else "value", known)


def unmeasured(returns: str, known: list[Any]) -> Row:
    """The row of an operator that accepted none of the calls."""
    written = [
        str(place)
        for schema in known
        for place, each in enumerate(schema.arguments)
        if each.alias_info is not None and each.alias_info.is_write
    ]
    return Row(returns, "?", min(written, default="-"), "?", "?")


def attributes() -> Iterator[tuple[str, Row]]:
    """The attributes of a tensor that are no methods."""
    value = torch.rand(3, 3, dtype=torch.float64, requires_grad=True) * 1
    for name in sorted(set(dir(torch.Tensor))):
        if name.startswith("_") or callable(getattr(torch.Tensor, name)):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = getattr(value, name)
            except (RuntimeError, AttributeError):
                continue
        if isinstance(found, torch.Tensor):
            memory, gradient = "alias" if shares(found, [value]) else "fresh", "kept" if found.requires_grad else "cut"
            yield name, Row("tensor", memory, gradient=gradient, dtype="same")
        else:
            yield name, Row("tensor" if name == "grad" else "value", gradient="cut")


def rows() -> Iterator[tuple[str, str, Row]]:
    """Home, name and row of every operator."""
    todo = [*names()]
    with elsewhere():
        torch._foreach_abs([torch.ones(1)])  # loads much, which each child would load again
    while todo:
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            measure(todo, writes)
        os.close(writes)
        with os.fdopen(reads) as answers:
            told = [json.loads(line) for line in answers]
        os.waitpid(child, 0)
        for (home, name, _), cells in zip(todo, told, strict=False):
            row = completed(Row(*cells) if cells else None, known(home, name))
            if row is not None:
                yield home, name, row
        for home, name, _ in todo[len(told) : len(told) + 1]:
            print(f"{home}.{name} ended the process", file=sys.stderr)
        todo = todo[len(told) + 1 :]
    for name, row in attributes():
        yield "attribute", name, row


def known(home: str, name: str) -> list[Any]:
    return [] if home == "functional" else schemas().get(name, [])


def measure(todo: list[tuple[str, str, Any]], writes: int) -> None:
    """Writes a line for each of TODO, as long as this process lives."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for home, name, function in todo:
                signal.alarm(60)
                row = measured(home, name, function, schemas().get(name, []))
                os.write(writes, json.dumps(row.cells() if row else []).encode() + b"\n")
            os.chdir("/")
    finally:  # whatever happens, the child does not go on as its parent
        os._exit(0)


def table() -> str:
    homes = defaultdict(list)
    for home, name, row in rows():
        homes[name, row.cells()].append(home)
    lines = sorted((name, ",".join(found), *cells) for (name, cells), found in homes.items())
    version = torch.__version__.partition("+")[0].rpartition(".")[0]
    return "\n".join([f"# By learn/torch_api.py, off torch {version}.", *(" ".join(line) for line in lines), ""])


def facts(text: str) -> dict[tuple[str, str], list[str]]:
    """Name and home → the columns, of each line of a table behind the first."""
    cells = (line.split(" ") for line in text.splitlines()[1:])
    return {(name, home): rest for name, homes, *rest in cells for home in homes.split(",")}


def compared(old: str, new: str) -> Iterator[str]:
    """What the tables OLD and NEW say differently; tags, which torch has added by and by, are counted."""
    before, after = facts(old), facts(new)
    both = sorted(before.keys() & after.keys())
    other = [key for key in both if before[key] != after[key]]
    tagged = [key for key in other if before[key][:-1] == after[key][:-1]]
    alike = len(both) - len(other)
    yield f"{len(both):,} rows are in both, {alike:,} of them the same; {len(tagged)} differ in traits alone"
    for title, keys in (
        ("in the table only", before.keys() - after.keys()),
        ("here only", after.keys() - before.keys()),
    ):
        yield f"{len(keys)} {title}: {', '.join(f'{home}.{name}' for name, home in sorted(keys))}"
    for name, home in (key for key in other if key not in tagged):
        yield f"{home}.{name}: {' '.join(before[name, home])}  here: {' '.join(after[name, home])}"
    for name, home in tagged:
        lost, added = (set(one[name, home][-1].split(",")) - {"-"} for one in (before, after))
        if added - lost:
            yield f"{home}.{name}: here also {', '.join(sorted(added - lost))}"


def main() -> None:
    text = table()
    if "--compare" in sys.argv:
        print(*compared(TABLE.read_text(encoding="utf-8"), text), sep="\n")
    elif "--print" in sys.argv:
        print(text, end="")
    else:
        TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
