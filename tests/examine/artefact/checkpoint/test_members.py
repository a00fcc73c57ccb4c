"""Members of an Enum, as Python before 3.11.4 writes them: by getattr, which may also reach what is no data."""

from __future__ import annotations

import pytest

from torchtriage.examine.artefact.checkpoint.builders import BUILDERS
from torchtriage.examine.artefact.checkpoint.names import Foreign, foreign
from torchtriage.examine.artefact.pickle.machine import Machine

ENUM = b"ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\n"


def judged(owner: bytes, member: bytes, rest: bytes = b"") -> Foreign:
    machine = Machine(b"cbuiltins\ngetattr\n(" + owner + b"S'" + member + b"'\ntR" + rest + b".", BUILDERS)
    machine.run()
    return foreign(machine.names, machine.called)


def test_a_member_of_a_known_enum_is_no_code() -> None:
    assert judged(ENUM, b"TORCH_PRESERVE_FORMAT").code == ()


def test_a_member_of_another_class_is_an_object_whose_code_must_be_there() -> None:
    told = judged(b"cmine.options\nStrategy\n", b"STEPS")
    assert told.code == ()
    assert "mine.options.Strategy.STEPS" in dict(told.objects)


@pytest.mark.parametrize(
    ("owner", "member", "rest", "name"),
    [
        (b"cos\npath\n", b"os", b"", "os.path.os"),
        (b"cos\npath\n", b"exists", b"(S'x'\ntR", "os.path.exists"),
        (b"ctorch\nTensor\n", b"apply_", b"(S'x'\ntR", "torch.Tensor.apply_"),
        (b"cmine\nNet\n", b"build", b"(S'x'\ntR", "mine.Net.build"),
        (ENUM, b"__class__", b"", "builtins.getattr"),
        (b"S'text'\n", b"format", b"", "builtins.getattr"),
    ],
)
def test_what_getattr_reaches_is_judged_by_its_own_name(owner: bytes, member: bytes, rest: bytes, name: str) -> None:
    assert name in dict(judged(owner, member, rest).code)
