"""Begins a trial in this process and writes down each check as it begins and ends."""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

from .guarding import guard
from .refusing import Refused, said
from .results import Result, unseen

FAULTY = "backward"


class Told:
    """One JSON line after the other, each written at once: a crash loses none of them."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def line(self, kind: str, **fields: Any) -> None:
        os.write(self.file, (json.dumps({"kind": kind, **fields}, default=str) + "\n").encode())


def main() -> None:
    """The request is a JSON file, named by the first argument."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - pathlib may be the user's own to import
        asked = json.load(file)
    told = Told(asked["answer"])
    os.chdir(asked["scratch"])
    sys.path.insert(0, asked["folder"])
    sys.argv[1:] = []
    warnings.simplefilter("ignore")
    guard(asked["scratch"], asked["folder"])
    try:
        tried(asked, told)
    except Refused as reason:
        told.line("refused", what=reason.what, where=reason.where, do=reason.do, code=reason.code)


def tried(asked: dict[str, Any], told: Told) -> None:
    """Looks for the function and its inputs, and goes through the checks that are not to be skipped."""
    told.line("begun", check="import")
    try:
        import torch
    except ImportError as error:
        do = "Put the Python that has torch first on PATH: `python -c 'import torch'` has to work."
        raise Refused(f"torch cannot be imported: {error}", sys.executable, do) from error
    torch.set_num_threads(1)
    from .given import Given
    from .target import subject
    from .trial import Trial, arguments

    target = subject(asked["target"])
    told.line("begun", check="inputs")
    given, again = arguments(target, asked)
    if not given.wanted:
        from .given import HOW

        raise Refused(f"no floating tensor is among its inputs ({given.shapes()})", target.name, HOW)
    reference = asked.get("reference")
    if reference:
        other = subject(reference)
        asked["reference"] = _like(Given, other, given)
    trial = Trial(target, given, again, asked)
    told.line("begun", check=FAULTY)
    results = [_unseen_before(asked)] if FAULTY in asked["skip"] else trial.backward()
    told.line("subject", **_facts(target, given))
    for each in results:
        told.line("result", check=FAULTY, **_placed(target, each))
    if any(each["state"] == "wrong" for each in results) or trial.base is None:
        return
    for name, check in trial.checks().items():
        if name in asked["skip"]:
            continue
        told.line("begun", check=name)
        try:
            result = check(trial.base)
        except Exception as error:  # noqa: BLE001 - told: one check takes no other away
            result = unseen(f"it raises {said(error)}", "Call it by hand in that situation to see why.")
        told.line("result", check=name, **_placed(target, result))


def _unseen_before(asked: dict[str, Any]) -> Result:
    return unseen(f"it ended the process or did not end ({len(asked['skip'])} checks)", "Run the function by itself.")


def _like(kind: Any, other: Any, given: Any) -> Any:
    """The reference with the very arguments of the function under trial."""
    from torch.utils import _pytree

    args, kwargs, _ = _pytree.tree_unflatten(given.leaves, given._spec)
    made = kind(other, args, kwargs, given.origin)
    made.wanted, made.declared, made.dtype = list(given.wanted), given.declared, given.dtype
    if made.shapes() != given.shapes():
        made.names = list(given.names)
    return made


def _facts(target: Any, given: Any) -> dict[str, Any]:
    import torch

    path, line = target.place()
    return {
        "name": target.name,
        "sort": target.kind,
        "path": path,
        "line": line,
        "torch": torch.__version__,
        "python": sys.executable,
        "inputs": given.shapes(),
        "origin": given.origin,
        "dtype": str(given.dtype).removeprefix("torch."),
        "functions": [each.__name__ for each in target.inner],
    }


def _placed(target: Any, result: Result) -> Result:
    if result["state"] != "wrong" and "autocast" not in result and "on_ctx" not in result:
        return result
    path, line = target.place(result.get("method", "backward"))
    return {**result, "path": path, "line": line}
