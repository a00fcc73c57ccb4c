"""What the figures in an error message work out to, room by room; figures that make no sense are never an error."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from torchtriage import specialists
from torchtriage.catalog.load import read
from torchtriage.core.query import Decoded
from torchtriage.routing import meaning
from torchtriage.triage import heard

MODULES: dict[str, ModuleType] = {
    room.name.rpartition(".")[2].replace("_", "-"): importlib.import_module(f"{room.name}.messages")
    for room in pkgutil.iter_modules(specialists.__path__, f"{specialists.__name__}.")
    if find_spec(f"{room.name}.messages")
}
WORKS = {
    (room, name): each
    for room, module in MODULES.items()
    for name, each in vars(module).items()
    if inspect.isfunction(each) and each.__module__ == module.__name__ and not name.startswith("_")
}
IN_SOURCE = "_in_source"
SIGNATURES = {each.name for symptom in read().symptoms.values() for each in symptom.signatures}


def messages(text: str) -> dict[str, Decoded]:
    """The first message of each signature in TEXT, worked out."""
    return {each.signature: each for each in reversed(heard(text)[0].decoded)}


def worked(text: str, name: str) -> Decoded:
    found = messages(text)
    assert name in found, sorted(found)
    return found[name]


def fields(message: Decoded, *names: str) -> dict[str, Any]:
    return {name: message.fields.get(name) for name in names}


# Where they live.


def test_a_function_of_messages_is_called_as_a_signature_of_its_room() -> None:
    homes = {
        (room.specialist, each.name.replace("-", "_"))
        for room in read().rooms
        for symptom in room.symptoms
        for each in symptom.signatures
    }
    assert {(room, name.removesuffix(IN_SOURCE)) for room, name in WORKS} <= homes
    assert len(WORKS) >= 9


def test_no_signature_is_called_as_something_else_in_messages_is() -> None:
    """triage finds the function by its name alone."""
    helpers = {name for module in MODULES.values() for name in vars(module)} - {name for _, name in WORKS}
    assert not {name.replace("-", "_") for name in SIGNATURES} & helpers


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1",
            "stacked-sizes",
        ),
        ("No inf checks were recorded for this optimizer.", "no-inf-checks"),
    ],
    ids=["a room without that function", "a room without messages"],
)
def test_a_message_that_nobody_works_out_keeps_its_words(text: str, name: str) -> None:
    says = {each.name: each.says for symptom in read().symptoms.values() for each in symptom.signatures}
    assert worked(text, name).says == says[name]


def test_a_text_without_a_message_has_none() -> None:
    assert heard("the loss is NaN")[0].decoded == ()


def test_a_message_after_many_mentions_of_its_symptom_is_worked_out_too() -> None:
    text = "OOM. " * 20 + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 7x3)\n" + OLD
    assert worked("It crashed. " * 20 + text, "cuda-out-of-memory").fields.get("capacity_gib") == 7.93


def test_two_messages_in_one_text_are_each_worked_out_with_their_own_figures() -> None:
    text = (
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 7x3)\n\n"
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x9 and 11x2)\n"
    )
    decoded = heard(text)[0].decoded
    assert [fields(each, "given", "expected") for each in decoded] == [
        {"given": 5, "expected": 7},
        {"given": 9, "expected": 11},
    ]


@pytest.mark.parametrize(
    ("value", "shape", "number"),
    [([2, 3], [2, 3], None), ([], [], None), (4, None, 4), (0.5, None, 0.5), ("4", None, None)],
)
def test_a_field_is_a_shape_a_number_or_neither(value: Any, shape: Any, number: Any) -> None:
    message = decoded("sizes-must-match", {"x": value})
    assert (meaning.shape(message, "x"), meaning.number(message, "x")) == (shape, number)
    assert (meaning.shape(message, "y"), meaning.number(message, "y")) == (None, None)


def test_what_is_told_keeps_the_fields_that_were_read() -> None:
    message = meaning.told(decoded("sizes-must-match", {"a": 3}), "Three", b=4)
    assert (message.says, message.fields) == ("Three", {"a": 3, "b": 4})


# Memory.

OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 6.25 GiB already "
    "allocated; 21.38 MiB free; 6.40 GiB reserved in total by PyTorch)"
)
OLDEST = OLD.replace("6.40 GiB reserved in total by PyTorch", "14.50 MiB cached")
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of "
    "which 1.15 GiB is free. Including non-PyTorch memory, this process has 70.00 GiB memory in use. Of the allocated "
    "memory 40.00 GiB is allocated by PyTorch, and 29.50 GiB is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
SHARED = NEW.replace("Including", "Process 12 has 8.00 GiB memory in use. Including")
FULL = NEW.replace("29.50 GiB is reserved", "120.00 MiB is reserved").replace("40.00 GiB is all", "69.30 GiB is all")


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (
            OLD,
            {
                "capacity_gib": 7.93,
                "allocated_gib": 6.25,
                "unallocated_gib": 0.15,
                "in_use_gib": 6.4,
                "free_gib": 0.021,
            },
        ),
        (OLD, {"others_gib": 1.509, "tried_gib": 0.02, "reserved_gib": 6.4}),
        (
            OLDEST,
            {
                "capacity_gib": 7.93,
                "allocated_gib": 6.25,
                "free_gib": 0.021,
                "reserved_gib": 6.264,
                "others_gib": 1.645,
            },
        ),
        (NEW, {"capacity_gib": 79.15, "allocated_gib": 40.0, "unallocated_gib": 29.5, "in_use_gib": 70.0}),
        (NEW, {"others_gib": 8.0, "tried_gib": 2.0, "free_gib": 1.15, "reserved_gib": None}),
        (SHARED, {"in_use_gib": 70.0, "others_gib": 8.0}),
        (FULL, {"allocated_gib": 69.3, "unallocated_gib": 0.117}),
    ],
)
def test_the_figures_of_an_out_of_memory_are_in_gib_whatever_torch_wrote_them(
    text: str, figures: dict[str, float | None]
) -> None:
    assert fields(worked(text, "cuda-out-of-memory"), *figures) == figures


@pytest.mark.parametrize(
    ("text", "said", "unsaid"),
    [
        (OLD, ["of 7.93 GiB, tensors hold 6.25 GiB", "keeps 153.60 MiB more", "other processes"], ["fragmented"]),
        (OLDEST, ["tensors hold 6.25 GiB", "keeps 14.50 MiB more", "context hold 1.64 GiB"], ["fragmented"]),
        (NEW, ["keeps 29.50 GiB more", "other processes and the CUDA context hold 8.00 GiB", "fragmented"], []),
        (FULL, ["keeps 120.00 MiB more"], ["fragmented"]),
        (NEW.replace("70.00", "77.90"), ["fragmented"], ["other processes"]),
    ],
)
def test_an_out_of_memory_says_who_holds_the_memory(text: str, said: list[str], unsaid: list[str]) -> None:
    says = worked(text, "cuda-out-of-memory").says
    assert all(each in says for each in said), says
    assert not any(each in says for each in unsaid), says


def test_a_size_below_a_hundredth_of_a_gib_is_told_in_mib() -> None:
    says = worked(FULL.replace("120.00 MiB is res", "3.00 MiB is res"), "cuda-out-of-memory").says
    assert "keeps 3.00 MiB more" in says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CUDA out of memory", "The GPU had no room for an allocation"),
        ("CUDA out of memory. Tried to allocate 20.00 MiB", "The device had no room for 20.00 MiB"),
        (OLD[:90], "GPU 0 had no room for 20.00 MiB"),
        (NEW[:160], "GPU 0 had no room for 2.00 GiB; it has 79.15 GiB; 1.15 GiB are free"),
    ],
)
def test_an_out_of_memory_without_all_of_its_figures_says_those_that_it_has(text: str, says: str) -> None:
    assert worked(text, "cuda-out-of-memory").says == says


# Shapes.


@pytest.mark.parametrize(
    ("first", "second", "given_", "expected", "why"),
    [
        ("32x784", "10x784", 784, 10, "mat2 fits when transposed: 10x784 would have to be 784x10"),
        ("64x32", "64x10", 32, 64, "mat1 fits when transposed: 64x32 would have to be 32x64"),
        ("128x7", "64x10", 7, 64, "128x7 holds 14 rows of 64"),
        ("8x32", "128x10", 32, 128, "8x32 holds 2 rows of 128"),
        ("5x512", "128x10", 512, 128, "512 is 4 times 128"),
        ("32x500", "784x10", 500, 784, "its in_features is 784 and its input has 500"),
    ],
    ids=["mat2 transposed", "mat1 transposed", "rows by a factor", "features by a factor", "flattened", "another size"],
)
def test_the_shapes_of_a_product_say_what_does_not_fit(
    first: str, second: str, given_: int, expected: int, why: str
) -> None:
    message = worked(f"RuntimeError: mat1 and mat2 shapes cannot be multiplied ({first} and {second})", "matmul-shapes")
    assert fields(message, "given", "expected") == {"given": given_, "expected": expected}
    assert f"got {given_} features where {expected} were expected" in message.says
    assert why in message.says


@pytest.mark.parametrize(
    ("a", "b", "said", "unsaid"),
    [
        (33, 32, ["33 and 32", "dimension 3", "differ by one"], ["times the other"]),
        (32, 33, ["differ by one"], ["times the other"]),
        (64, 16, ["One is 4 times the other"], ["differ by one"]),
        (16, 64, ["One is 4 times the other"], ["differ by one"]),
        (30, 16, ["broadcast only where equal or 1"], ["differ by one", "times the other"]),
        (7, 0, ["7 and 0"], ["times the other"]),
    ],
)
def test_two_sizes_that_must_match_say_how_they_differ(a: int, b: int, said: list[str], unsaid: list[str]) -> None:
    text = f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension 3"
    says = worked(text, "sizes-must-match").says
    assert all(each in says for each in said), says
    assert not any(each in says for each in unsaid), says


IN_PLACE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
)


@pytest.mark.parametrize(
    ("output", "version", "expected", "says", "writes"),
    [
        (", which is output 0 of ReluBackward0,", 1, 0, "the output of ReluBackward0, was written in place once", 1),
        (", which is output 0 of TanhBackward0,", 5, 2, "the output of TanhBackward0, was written in place 3 times", 3),
        ("", 2, 1, "A tensor was written in place once after forward", 1),
    ],
)
def test_the_versions_of_a_tensor_count_the_writes_in_place(
    output: str, version: int, expected: int, says: str, writes: int
) -> None:
    text = (
        f"{IN_PLACE}: [torch.FloatTensor [4, 3]]{output} is at version {version}; expected version {expected} instead. "
        "Hint: enable anomaly detection"
    )
    message = worked(text, "modified-in-place")
    assert says in message.says
    assert message.fields["writes"] == writes


def test_a_write_in_place_without_versions_keeps_its_words() -> None:
    message = worked(IN_PLACE, "modified-in-place")
    assert "writes" not in message.fields
    assert message.says


@pytest.mark.parametrize(("version", "expected"), [(1, 1), (1, 3)])
def test_versions_that_do_not_grow_count_no_writes(version: int, expected: int) -> None:
    text = f"{IN_PLACE}: [torch.FloatTensor [4]] is at version {version}; expected version {expected} instead"
    assert "times" not in worked(text, "modified-in-place").says


# State dicts.


def mismatch(missing: list[str], unexpected: list[str], heading: bool = True) -> str:
    """The message of load_state_dict, without its heading as somebody may have cut it."""
    lines = ["RuntimeError: Error(s) in loading state_dict for Net:"] if heading else []
    for name, keys in (("Missing", missing), ("Unexpected", unexpected)):
        if keys:
            lines.append(f"\t{name} key(s) in state_dict: " + ", ".join(f'"{key}"' for key in keys) + ". ")
    return "\n".join(lines)


KEYS = ["conv1.weight", "conv1.bias", "layers.0.norm.weight", "layers.0.norm.bias", "fc.weight"]


def under(prefix: str, keys: list[str] = KEYS) -> list[str]:
    return [f"{prefix}{key}" for key in keys]


@pytest.mark.parametrize("side", ["checkpoint", "model"])
@pytest.mark.parametrize(
    ("prefix", "origin"),
    [
        ("module.", "DistributedDataParallel"),
        ("_orig_mod.", "torch.compile"),
        ("_forward_module.", "launcher"),
        ("backbone.net.", None),
    ],
)
def test_keys_that_differ_by_a_prefix_are_one_fault(prefix: str, origin: str | None, side: str) -> None:
    longer, shorter = under(prefix), KEYS
    text = mismatch(shorter, longer) if side == "checkpoint" else mismatch(longer, shorter)
    message = worked(text, "state-dict-keys")
    assert fields(message, "prefix", "prefix_in", "missing_count", "unexpected_count") == {
        "prefix": prefix,
        "prefix_in": side,
        "missing_count": len(KEYS),
        "unexpected_count": len(KEYS),
    }
    assert f"the prefix '{prefix}', which the {side} has" in message.says
    assert origin is None or origin in message.says


@pytest.mark.parametrize(
    ("missing", "unexpected"),
    [
        (["head.weight", "head.bias"], ["classifier.weight", "classifier.out.bias"]),
        (KEYS, ["module.fc.weight"]),
        (KEYS, []),
        ([], KEYS),
        (["weight"], ["fcweight"]),
    ],
    ids=["other names", "one of many", "missing only", "unexpected only", "no point between"],
)
def test_keys_that_share_no_prefix_are_counted(missing: list[str], unexpected: list[str]) -> None:
    message = worked(mismatch(missing, unexpected), "state-dict-keys")
    assert "prefix" not in message.fields
    assert fields(message, "missing_count", "unexpected_count") == {
        "missing_count": len(missing),
        "unexpected_count": len(unexpected),
    }
    assert f"{len(missing)} keys of the model" in message.says


def test_a_prefix_that_most_of_the_keys_share_is_one_all_the_same() -> None:
    message = worked(mismatch(KEYS, [*under("module.", KEYS[:4]), "extra"]), "state-dict-keys")
    assert message.fields["prefix"] == "module."


def test_a_prefix_is_said_once() -> None:
    found = messages(mismatch(KEYS, under("module.")))
    assert "prefix" in found["state-dict-keys"].fields
    assert not any("prefix" in found[name].fields for name in ("missing-keys", "unexpected-keys"))
    cut = messages(mismatch(KEYS, under("module."), heading=False))
    assert "prefix" in cut["missing-keys"].fields
    assert "prefix" not in cut["unexpected-keys"].fields


def test_a_list_of_unexpected_keys_alone_is_counted() -> None:
    message = worked(mismatch([], KEYS, heading=False), "unexpected-keys")
    assert fields(message, "missing_count", "unexpected_count") == {"missing_count": 0, "unexpected_count": 5}


def test_a_heading_without_lists_keeps_its_words() -> None:
    message = worked("RuntimeError: Error(s) in loading state_dict for Net:\n", "state-dict-keys")
    assert message.says == "The checkpoint does not fit the model"


def test_a_head_that_one_key_has_is_not_the_prefix_of_all() -> None:
    tails = [f"t{at}" for at in range(300)]
    message = worked(mismatch(tails, [f"h{tail}.{tail}" for tail in tails]), "state-dict-keys")
    assert "prefix" not in message.fields
    assert message.fields["missing_count"] == 300


@pytest.mark.parametrize(
    ("saved", "current", "said", "unsaid"),
    [
        (
            "1000, 512",
            "10, 512",
            ["fc.weight: dimension 0 is 1000 in the checkpoint and 10 in the model", "classes"],
            [],
        ),
        ("64, 3, 7, 7", "64, 1, 7, 7", ["dimension 1 is 3 in the checkpoint and 1 in the model"], ["Only the first"]),
        ("8, 4", "6, 2", ["dimension 0 is 8", " and dimension 1 is 4"], ["Only the first"]),
        ("10", "12", ["dimension 0 is 10 in the checkpoint and 12 in the model"], []),
    ],
)
def test_a_parameter_of_another_shape_says_where_it_differs(
    saved: str, current: str, said: list[str], unsaid: list[str]
) -> None:
    says = worked(_sizes(saved, current), "parameter-size").says
    assert all(each in says for each in said), says
    assert not any(each in says for each in unsaid), says


@pytest.mark.parametrize(("saved", "current"), [("", "3"), ("3", ""), ("3, 4", "3"), ("3, 4", "3, 4"), ("", "")])
def test_shapes_that_cannot_be_compared_keep_the_messages_words(saved: str, current: str) -> None:
    says = worked(_sizes(saved, current), "parameter-size").says
    assert says == "A parameter has another shape in the checkpoint than in the model"


def _sizes(saved: str, current: str) -> str:
    return (
        f"size mismatch for fc.weight: copying a param with shape torch.Size([{saved}]) from checkpoint, "
        f"the shape in current model is torch.Size([{current}])."
    )


# Ranks.

UNFINISHED = (
    "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error "
    "indicates that your module has parameters that were not used in producing loss.\n"
)


@pytest.mark.parametrize(
    ("rest", "expected", "said"),
    [
        (
            "Parameter indices which did not receive grad for rank 1: 2 3 7\n In addition, you can set",
            {"rank": 1, "indices": [2, 3, 7], "names": None},
            ["3 parameters got no gradient on rank 1: numbers 2, 3, 7 of", "TORCH_DISTRIBUTED_DEBUG"],
        ),
        (
            "Parameters which did not receive grad for rank 0: head.bias, head.weight\n"
            "Parameter indices which did not receive grad for rank 0: 2 3",
            {"rank": 0, "names": "head.bias, head.weight", "indices": None},
            ["2 parameters got no gradient on rank 0: head.bias, head.weight"],
        ),
        (
            "Parameter indices which did not receive grad for rank 0: " + " ".join(map(str, range(20))) + "\n",
            {"rank": 0, "indices": list(range(20))},
            ["20 parameters", "5, 6, 7 and 12 more"],
        ),
    ],
    ids=["by index", "by name", "many"],
)
def test_ddp_says_which_parameters_got_no_gradient(rest: str, expected: dict[str, Any], said: list[str]) -> None:
    message = worked(UNFINISHED + rest, "unfinished-reduction")
    assert fields(message, *expected) == expected
    assert all(each in message.says for each in said), message.says


def test_ddp_without_a_list_keeps_its_words() -> None:
    assert worked(UNFINISHED, "unfinished-reduction").says == (
        "Some parameters got no gradient before the next step began"
    )


# Figures that make no sense.


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory. Tried to allocate 1.2.3 GiB",
        "CUDA out of memory. Tried to allocate ... GiB",
        OLD.replace("6.25", "6.2.5"),
        OLD.replace("6.25 GiB", "6.25 iB"),
        OLD.replace("6.25 GiB", "6.25 G\u0131B"),
        OLD.replace("6.25 GiB", "6.25 byte\u017f"),
        OLD.replace("6.40", "1.40"),
        NEW.replace("70.00 GiB", "17179869184.00 GiB"),
        NEW.replace("79.15", "0.00"),
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 0x3)",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (0x0 and 0x0)",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 5x3)",
        f"RuntimeError: mat1 and mat2 shapes cannot be multiplied ({'9' * 18}x{'9' * 18} and {'8' * 18}x1)",
        "The size of tensor a (0) must match the size of tensor b (0) at dimension 0",
        f"The size of tensor a ({'9' * 18}) must match the size of tensor b (1) at dimension 9999",
        mismatch(["a"], ["a"]),
        mismatch(["."], [".."]),
        mismatch(["a" * 201], ["b" * 201]),
        UNFINISHED + "Parameter indices which did not receive grad for rank 999999: 9999999 9999999",
        UNFINISHED + "Parameters which did not receive grad for rank 0: ., , .",
    ],
)
def test_figures_that_make_no_sense_are_no_error(text: str) -> None:
    assert heard(f"It stopped:\n{text}\nWhat now?")[0].decoded


@pytest.mark.parametrize("text", [OLD.replace("6.40", "1.40"), NEW.replace("70.00 GiB", "17179869184.00 GiB")])
def test_no_memory_is_ever_less_than_nothing(text: str) -> None:
    message = worked(text, "cuda-out-of-memory")
    sizes = [value for name, value in message.fields.items() if name.endswith("_gib")]
    assert all(isinstance(size, float) and size >= 0 for size in sizes)
    assert "-" not in message.says


def decoded(signature: str, found: dict[str, Any], text: str = "x") -> Decoded:
    return Decoded(0, len(text), text, signature=signature, fields=found, faults=(), says="As it was")


WHOLE = st.integers(0, 9) | st.integers(0, 10**18)
SHAPE = st.lists(WHOLE, min_size=2, max_size=2) | st.lists(WHOLE, max_size=4)
ANY = WHOLE | st.floats(0, 1e12) | st.text(max_size=8) | SHAPE
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("mat1", "mat2", "saved", "current"), SHAPE | ANY),
        **dict.fromkeys(("a", "b", "dimension", "version", "expected"), WHOLE | ANY),
        **dict.fromkeys(("operation", "name"), ANY),
    },
)
PIECES = st.sampled_from(
    [OLD, NEW, UNFINISHED, mismatch(KEYS, under("module.")), "Parameters which did not receive grad"]
)


@pytest.mark.parametrize("name", sorted(name for _, name in WORKS if not name.endswith(IN_SOURCE)))
@given(found=FIELDS, text=st.text() | PIECES)
def test_any_fields_and_any_text_give_a_message_or_nothing(name: str, found: dict[str, Any], text: str) -> None:
    work = next(each for (_, own), each in WORKS.items() if own == name)
    message = decoded(name.replace("_", "-"), found, text or "x")
    answer = work(message, text)
    assert answer is None or replace(answer, says=message.says, fields=message.fields) == message
    if answer is not None:
        assert answer.says
        assert not answer.says.endswith(".")


NOISE = st.sampled_from([".", "x", " ", "0", "9", "iB", "\u0131", ",", '"', "\n", "[", "-"])


@given(
    st.sampled_from([OLD, NEW, UNFINISHED + "Parameter indices which did not receive grad for rank 1: 2 3", IN_PLACE,
                     mismatch(KEYS, under("module.")), _sizes("3, 4", "5, 4"),
                     "mat1 and mat2 shapes cannot be multiplied (4x5 and 7x3)"]),
    st.lists(st.tuples(st.integers(0, 400), NOISE), max_size=4),
)  # fmt: skip
def test_a_damaged_message_is_never_an_error(text: str, damage: list[tuple[int, str]]) -> None:
    for place, sign in damage:
        at = place % len(text)
        text = text[:at] + sign + text[at + 1 :]
    query, _ = heard(text)
    assert all(text[each.start : each.end] == each.text for each in query.decoded)


def test_each_modules_error_is_judged_by_its_own_keys() -> None:
    text = (
        'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "module.fc.weight". \n'
        '\tUnexpected key(s) in state_dict: "fc.weight". \n'
        'Error(s) in loading state_dict for Ema:\n\tMissing key(s) in state_dict: "shadow.b". '
    )
    says = [each.says for each in heard(text)[0].decoded if each.signature == "state-dict-keys"]
    assert "prefix 'module.'" in says[0]
    assert says[1].startswith("1 keys of the model are not in the checkpoint, 0 of")


def test_shapes_that_multiply_are_not_explained() -> None:
    assert "factor" not in worked("mat1 and mat2 shapes cannot be multiplied (32x512 and 512x10)", "matmul-shapes").says


def test_a_decimal_comma_gives_no_figures() -> None:
    text = OLD.replace("7.93", "15,78").replace("6.25", "14,00")
    assert not {"capacity_gib", "allocated_gib"} & set(worked(text, "cuda-out-of-memory").fields)
