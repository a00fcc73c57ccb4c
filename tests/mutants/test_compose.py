"""Faults that are split over two files or hidden behind a setting, and do what the plain fault does."""

from mutants.compose import configure, split
from mutants.source import Project

TEXT = """import torch
from torch import nn


def train(model, loader, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""


def project() -> Project:
    return Project.of("sample", {"train.py": TEXT})


def test_split_moves_a_statement_into_another_file():
    source = project()["train.py"]
    found = split(project(), source.replace(source.tree.body[2].body[1].body[2], "loss.mean()"), "x")
    assert found is not None
    assert "def apply_mean(loss):\n    return loss.mean()\n" in found.texts["helpers.py"]
    assert "from helpers import apply_mean\n" in found.texts["train.py"]
    assert "        apply_mean(loss)\n" in found.texts["train.py"]
    assert set(found.lines) == {"train.py", "helpers.py"}


def test_split_brings_the_imports_that_a_statement_needs():
    source = project()["train.py"]
    value = next(node for node in source.walk(type(source.tree.body[2].body[0].value)) if "SGD" in source.code(node))
    site = source.replace(value, source.code(value).replace("SGD", "Adam"))
    found = split(project(), site, "x")
    assert found is not None
    assert found.texts["helpers.py"].startswith('"""What several files of this program use."""\n\nimport torch\n')
    assert "def apply_adam(model, rate):" in found.texts["helpers.py"]


def test_split_leaves_what_needs_names_of_its_own_file():
    text = TEXT.replace("rate)", "RATE)").replace("\n\ndef", "\n\nRATE = 3\n\n\ndef", 1)
    own = Project.of("sample", {"train.py": text})
    source = own["train.py"]
    value = next(node for node in source.walk(type(source.tree.body[3].body[0].value)) if "SGD" in source.code(node))
    assert split(own, source.replace(value, source.code(value).replace("SGD", "Adam")), "x") is None


def test_configure_puts_an_omission_behind_a_switch_that_is_off():
    source = project()["train.py"]
    found = configure(project(), source.drop(source.tree.body[2].body[1].body[0]), "zero-grad-dropped")
    assert found is not None
    assert "        if SETTINGS.full_step:\n            optimizer.zero_grad()\n" in found.texts["train.py"]
    assert "full_step: bool = False" in found.texts["run_settings.py"]
    compile(found.texts["train.py"], "train.py", "exec")


def test_configure_puts_a_number_into_the_settings():
    own = Project.of("sample", {"train.py": TEXT.replace("lr=rate", "lr=0.1")})
    source = own["train.py"]
    number = next(node for node in source.walk(type(source.tree.body[2].body[0].value.keywords[0].value))
                  if source.code(node) == "0.1")  # fmt: skip
    found = configure(own, source.replace(number, "100.0"), "learning-rate-times-1000")
    assert found is not None
    assert "lr=SETTINGS.learning_value" in found.texts["train.py"]
    assert "learning_value: float = 100.0" in found.texts["run_settings.py"]
    assert found.lines["run_settings.py"] == [9]


def test_configure_leaves_faults_of_two_places():
    source = project()["train.py"]
    first, second = source.tree.body[2].body[1].body[0], source.tree.body[2].body[1].body[2]
    assert configure(project(), source.drop(first) + source.drop(second), "x") is None
