"""Files that were healthy once: what was cut off, flipped or mixed is named, and what can still be had is said."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from stored.genuine import GENUINE

from torchtriage import triage
from torchtriage.core.case import Case


def slugs(case: Case) -> set[str]:
    return {found.fault.slug for found in case.findings}


def facts(case: Case) -> list[str]:
    return [item.fact for found in case.findings for item in found.evidence]


def saved(folder: Path, state: Any = None) -> Path:
    path = folder / "model.pt"
    torch.save(
        state or {"a.weight": torch.randn(300, 10), "b.weight": torch.randn(300, 10), "b.bias": torch.zeros(9)}, path
    )
    return path


@pytest.mark.parametrize(
    ("entry", "kept"), [("version", "3 of 3"), ("data/2", "2 of 3"), ("data/1", "1 of 3"), ("data/0", "0 of 3")]
)
def test_of_a_file_that_was_cut_off_it_is_said_which_tensors_are_whole(entry: str, kept: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(f"model/{entry}".encode()) + 10])
    (fact,) = facts(triage.read([path]))
    assert fact.startswith("the directory at its end is not there: it was cut off, or never written to its end")
    assert f"{kept} tensors lie whole before the cut" in fact


@pytest.mark.parametrize("name", ["weights-legacy", "safetensors"])
def test_other_forms_that_were_cut_off_say_so_too(name: str, tmp_path: Path) -> None:
    path = GENUINE[name](tmp_path)
    path.write_bytes(path.read_bytes()[:-300])
    (fact,) = facts(triage.read([path]))
    assert "lie whole before the cut" in fact


def test_every_flipped_bit_of_the_numbers_is_found_and_the_tensor_named(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data, chance = path.read_bytes(), random.Random(0)
    for name in ("a.weight", "b.weight"):
        begin = data.index(torch.load(path)[name].numpy().tobytes())
        for _ in range(10):
            broken = bytearray(data)
            broken[begin + chance.randrange(12_000)] ^= 1 << chance.randrange(8)
            (tmp_path / "broken.pt").write_bytes(broken)
            places = [
                found.evidence[0].place.module for found in triage.read([tmp_path / "broken.pt"], verify=True).findings
            ]
            assert name in places


def test_a_flipped_bit_of_the_pickle_is_found_without_verify(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data, chance = path.read_bytes(), random.Random(1)
    begin, end = 64, data.index(b"PK\x07\x08")
    for _ in range(50):
        broken = bytearray(data)
        broken[chance.randrange(begin, end)] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        assert "checkpoint-corrupt" in slugs(triage.read([path]))


def test_numbers_without_a_checksum_are_said_to_have_none(tmp_path: Path) -> None:
    case = triage.read([GENUINE["safetensors"](tmp_path)], verify=True)
    assert ["have no checksum" in item.why for item in case.inconclusive] == [True]


def test_what_is_packed_is_read_and_not_verified(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "model.pt.gz").write_bytes(gzip.compress(saved(tmp_path).read_bytes(), mtime=0))
    case = triage.read([tmp_path / "model.pt.gz"], verify=True)
    assert {given.verdict for given in case.verdicts} == {"weights-only"}
    assert any("it is packed or elsewhere" in item.why for item in case.inconclusive)


@pytest.mark.parametrize(
    ("dtype", "value", "found"),
    [
        (torch.float32, float("nan"), True), (torch.float64, float("inf"), True), (torch.float16, float("nan"), True),
        (torch.bfloat16, float("inf"), True), (torch.float8_e5m2, float("inf"), True), (torch.complex64, float("nan"), True),
        (torch.float32, 3e38, False), (torch.float16, 65504.0, False), (torch.bfloat16, 3e38, False),
    ],
)  # fmt: skip
def test_what_is_not_finite_is_found_in_every_format(dtype: Any, value: float, found: bool, tmp_path: Path) -> None:
    weight = torch.zeros(1000).to(dtype)
    weight[77] = value
    path = saved(tmp_path, {"fc.weight": weight, "fc.bias": torch.zeros(3)})
    case = triage.read([path], verify=True)
    assert slugs(case) == ({"checkpoint-not-finite"} if found else set())
    if found:
        assert case.findings[0].evidence[0].place.module == "fc.weight"


def test_numbers_that_are_none_in_a_file_without_known_parts_are_told_and_not_judged(tmp_path: Path) -> None:
    path = saved(tmp_path, {"w": torch.full((3,), float("nan"))})
    case = triage.read([path], verify=True)
    assert not case.findings
    (item,) = case.inconclusive
    assert item.detector == "checkpoint/checkpoint-not-finite"
    assert "NaN or Inf in w; whether these are weights cannot be told" in item.why


def test_results_without_such_numbers_are_silent(tmp_path: Path) -> None:
    assert not triage.read([saved(tmp_path, {"w": torch.ones(3)})], verify=True).inconclusive


ROW = '"a":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}'


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("{" + ROW % (4, 8) + "}", "4 bytes stand before a"),
        ("{" + ROW % (0, 4) + "," + ROW % (4, 8) + "}", "4 bytes stand before a"),
        ('{"__metadata__":{"step":1},' + ROW % (0, 8) + "}", "its __metadata__ is no table of texts"),
        ('{"__metadata__":[1],' + ROW % (0, 8) + "}", "its __metadata__ is no table of texts"),
        ('{"__metadata__":{"step":"1"},' + ROW % (0, 8) + "}", ""),
        ('{"__metadata__":null,' + ROW % (0, 8) + "}", ""),
    ],
)
def test_a_header_that_the_library_refuses_is_damage_and_none_other(header: str, said: str, tmp_path: Path) -> None:
    data = header.replace('"shape":[1],"data_offsets":[0,8]', '"shape":[2],"data_offsets":[0,8]').encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(data).to_bytes(8, "little") + data + bytes(8))
    told = facts(triage.read([path]))
    assert [each.startswith(said) for each in told] == ([True] if said else [])
    if said:
        with pytest.raises(SafetensorError):
            load_file(path)
    else:
        assert len(load_file(path)["a"]) == 2


def test_of_files_that_are_numbered_it_is_said_which_is_not_there(tmp_path: Path) -> None:
    for number in (1, 3):
        save_file({"l.weight": torch.ones(2, 2)}, tmp_path / f"model-0000{number}-of-00003.safetensors")
    told = [item.why for item in triage.read([tmp_path]).inconclusive]
    (said,) = [why for why in told if "their names tell of" in why]
    assert said == f"{tmp_path}/model: 2 of the 3 files that their names tell of were read; without 00002"
    save_file({"l.weight": torch.ones(2, 2)}, tmp_path / "model-00002-of-00003.safetensors")
    assert not any("their names tell of" in item.why for item in triage.read([tmp_path]).inconclusive)


def test_a_pipe_in_the_folder_of_a_model_is_told_and_never_opened(tmp_path: Path) -> None:
    save_file({"l.weight": torch.ones(2, 2)}, tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map":{"l.weight":"model.safetensors"}}')
    os.mkfifo(tmp_path / "config.json")
    case = triage.read([tmp_path])
    assert not case.findings
    assert any("config.json: it is a device, a pipe" in item.why for item in case.inconclusive)


def test_without_verify_it_is_said_that_the_numbers_were_not_read(tmp_path: Path) -> None:
    (item,) = triage.read([saved(tmp_path)]).inconclusive
    assert "were not read" in item.why
    assert "--verify" in item.unblock


# Sharded


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Path]:
    with pytest.warns(UserWarning, match="process"):
        yield GENUINE["dcp"](tmp_path)


def test_a_data_file_that_is_gone_is_named_with_what_it_held(shards: Path) -> None:
    (shards / "__0_0.distcp").unlink()
    (fact,) = facts(triage.read([shards]))
    assert fact.startswith("__0_0.distcp is not there: it holds ")


def test_a_data_file_that_is_shorter_or_longer_than_its_metadata_says_is_named(shards: Path) -> None:
    path = shards / "__0_0.distcp"
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    assert any("of its pieces lie whole before the cut" in fact for fact in facts(triage.read([shards])))
    path.write_bytes(data + b"x" * 50)
    assert facts(triage.read([shards])) == [
        "__0_0.distcp has 50 bytes more than .metadata tells of: it is of another save"
    ]


def test_a_shard_outside_of_the_folder_is_not_read(shards: Path) -> None:
    path = shards / ".metadata"
    path.write_bytes(path.read_bytes().replace(b"__0_0.distcp", b"../../../etc"))
    assert facts(triage.read([shards])) == ["it refers to '../../../etc', which leads out of the folder: not read"]


def test_a_flipped_bit_in_a_shard_is_found_and_the_tensor_named(shards: Path) -> None:
    path = shards / "__0_0.distcp"
    data = bytearray(path.read_bytes())
    whole = torch.load(io.BytesIO(_piece(shards, "model.0.weight")), weights_only=True)
    data[data.index(whole.numpy().tobytes()) + 9] ^= 4
    path.write_bytes(data)
    assert slugs(triage.read([shards])) == set()
    places = [found.evidence[0].place.module for found in triage.read([shards], verify=True).findings]
    assert places == ["model.0.weight"]


def _piece(shards: Path, name: str) -> bytes:
    from torch.distributed.checkpoint import FileSystemReader

    told = FileSystemReader(shards).read_metadata().storage_data
    (place,) = (each for index, each in told.items() if index.fqn == name)
    return (shards / place.relative_path).read_bytes()[place.offset : place.offset + place.length]


def test_a_data_file_that_is_younger_than_the_metadata_is_told_and_not_judged(shards: Path) -> None:
    os.utime(shards / ".metadata", (10**9, 10**9))
    case = triage.read([shards])
    assert slugs(case) == set()
    assert any("with two saves mixed, and so does a copy" in item.why for item in case.inconclusive)


@pytest.mark.filterwarnings("ignore")
def test_two_saves_in_one_folder_are_told_by_the_steps_of_the_optimizer(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict

    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for generation in ("one", "two"):
        for _ in range(3):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
        state = dict(zip(("model", "optim"), get_state_dict(model, optimizer), strict=True))
        files = dcp.FileSystemWriter(tmp_path / generation, single_file_per_rank=False)
        dcp.save(state, storage_writer=files, no_dist=True)
        assert slugs(triage.read([tmp_path / generation])) == set()
    names = sorted(path.name for path in (tmp_path / "two").glob("*.distcp"))
    for name in names[: len(names) // 2]:
        (tmp_path / "one" / name).write_bytes((tmp_path / "two" / name).read_bytes())
    (fact,) = facts(triage.read([tmp_path / "one"]))
    assert fact.startswith("two saves are mixed: by __0_")
    assert "the optimizer has made 3 steps" in fact
    assert "6" in fact
