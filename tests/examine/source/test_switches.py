"""Which operations of torch work in place when they are told to."""

from __future__ import annotations

import inspect

import torch

from torchtriage.examine.source.names import table


def test_the_table_names_each_operation_with_an_inplace_argument_and_its_position() -> None:
    found = {}
    for module, home in ((torch.nn.functional, "torch.nn.functional"), (torch.nn, "torch.nn")):
        for name, each in vars(module).items():
            if name.startswith("_") or not callable(each) or isinstance(each, type(torch)):
                continue
            try:
                words = list(inspect.signature(each).parameters)
            except (TypeError, ValueError):
                continue
            if "inplace" in words:
                found[f"{home}.{name}"] = words.index("inplace")
    assert table()["inplace"] == found
