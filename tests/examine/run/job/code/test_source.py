"""What the user has written, found in bytecode and source."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
import torch

from torchtriage.examine.run.job.code import source

SOURCE = """
import functools
import sys


def wrapped(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)
    return inner


class Base:
    def set_up(self):
        self.late = 1
        del self.gone


class Model(Base):
    def forward(self):
        self.early = 2

    @wrapped
    def __init__(self):
        self.early = (
            1
        )

    @staticmethod
    def calls(see):
        see(dict(
            *[], key=2,
        ))

    def drops(self, see):
        frame_of(see)
        _ = frame_of(see)
        kept = frame_of(see)  # a remark
        return kept


class Made:
    def backward(self, see):
        see(sys._getframe(1))


def learn(see, scaler=str):
    loss = None
    loss = Made()  # of this step
    scaled = [
        loss
    ]
    scaled[0].backward(see)
    scaled = None


def frame_of(see):
    see(sys._getframe(1))
"""


@pytest.fixture
def model(tmp_path: Path) -> Iterator[ModuleType]:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("model_for_test_written", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("model_for_test_written", None)


def line(text: str, nth: int = 0) -> int:
    return [number for number, each in enumerate(SOURCE.splitlines(), 1) if text in each][nth]


def test_an_attribute_is_assigned_where_the_constructor_does_or_else_another_method(model: ModuleType) -> None:
    path, number = source.assigned(model.Model, "early")
    assert Path(path).name == "model.py"
    assert number == line("self.early", 1)
    assert source.assigned(model.Model, "late")[1] == line("self.late")
    assert source.assigned(model.Model, "nowhere") == ("", 0)


def test_the_line_that_made_a_loss_is_the_last_before_its_backward(model: ModuleType) -> None:
    seen: list[int] = []
    model.learn(lambda frame: seen.append(source.root_of(frame)))
    assert seen == [line("scaled = [")]
    model.Made().backward(lambda frame: seen.append(source.root_of(frame)))
    assert seen[1] == 0


def test_what_is_deleted_is_found_where_it_is_deleted(model: ModuleType) -> None:
    code = source.code_of(model.Base.set_up)
    assert code is not None
    assert source.stored(code, "gone", deleted=True) == line("del self.gone")
    assert source.stored(code, "gone") == 0


def test_the_code_of_an_installed_class_is_not_the_users() -> None:
    assert list(source.codes(ast.NodeVisitor)) == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="positions within a line came with 3.11")
def test_the_call_under_way_is_read_over_several_lines(model: ModuleType) -> None:
    seen: list[Any] = []

    def see(_: FrameType) -> None:
        seen.append(source.call_in(sys._getframe(1)))

    model.Model.calls(see)
    (call,) = seen
    assert ast.unparse(call.func) == "see"
    (inner,) = call.args
    assert [each.arg for each in inner.keywords] == ["key"]


def test_the_lines_of_a_function_that_return_are_not_those_of_functions_within_it(model: ModuleType) -> None:
    texts = SOURCE.splitlines()
    wrapped, drops = source.returns(model.wrapped.__code__), source.returns(model.Model.drops.__code__)
    assert [texts[line - 1].strip() for line in [*wrapped, *drops]] == ["return inner", "return kept"]
    assert source.returns(model.Base.set_up.__code__) == []


def test_a_result_that_nobody_takes_is_dropped(model: ModuleType) -> None:
    seen: list[bool] = []
    model.Model().drops(lambda frame: seen.append(source.dropped(frame)))
    assert seen == [True, True, False]


def test_names_fall_into_words() -> None:
    assert source.words("val_loader = MCDropout(evalMode, HTTP)") == {
        "val",
        "loader",
        "mc",
        "dropout",
        "eval",
        "mode",
        "http",
    }


def test_lines_come_with_or_without_remarks(model: ModuleType) -> None:
    code = model.Model.drops.__code__
    number = line("a remark")
    assert source.lines_of(code, number, number) == "        kept = frame_of(see)\n"
    assert "a remark" in source.lines_of(code, number, number, comments=True)


def test_the_tree_of_a_function_counts_lines_as_its_file_does(model: ModuleType) -> None:
    tree = source.tree_of(model.Model.drops.__code__)
    assert tree is not None
    assert min(node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assign)) == line("_ = frame_of")
    whole = source.file_of(model.Model.drops.__code__)
    assert whole is not None
    assert sum(isinstance(node, ast.ClassDef) for node in ast.walk(whole)) == 3


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()


@pytest.mark.parametrize(
    ("path", "said"),
    [("inner.layers.0", "self.layers ="), ("inner", "self.inner ="), ("inner.layers.0.weight", "self.layers =")],
)
def test_a_module_is_made_where_the_deepest_of_the_users_classes_sets_it(path: str, said: str) -> None:
    _, line = source.made(Outer(), path)
    assert said in linecache.getline(__file__, line)


def test_what_was_put_together_outside_of_classes_has_no_line() -> None:
    assert source.made(torch.nn.Sequential(torch.nn.Linear(2, 2)), "0") == ("", 0)
