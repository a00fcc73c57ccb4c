"""What the readings that compare ranks say of looks and marks made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import Events

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Evidence, Observed
from torchtriage.diagnose import weigh
from torchtriage.examine.detector import perform
from torchtriage.examine.run.ranks.looks import divergence
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.distributed_training_strategies.probes import _carried
from torchtriage.specialists.distributed_training_strategies.readings import divergence as readings
from torchtriage.specialists.distributed_training_strategies.readings import handles, launch, normalising, saves, shards

TURNS = (0, 1, 2, 3, 4, 6, 8, 12, 16)
HEAD = {
    "kind": "replicas", "step": 0, "optimizer": 0, "turn": 0, "key": 7, "names": ["a.weight", "b.weight"], "left": 0,
    "sizes": [8, 4], "kinds": "pp", "name": "Net", "class": "SGD", "built": ["t.py", 5],
}  # fmt: skip
WRAPPED = {**HEAD, "over": [0, 1], "hooks": [], "made": ["t.py", 4]}
LOOK = {
    "kind": "look", "optimizer": 0, "key": 7, "writes": [0, 0], "settings": [{"lr": 0.1}], "clips": 0, "clipped": [],
    "at": ["t.py", 9], "averaged": 0, "weights": 0, "calls": 0, "gradients": 1, "states": None, "squares": [4.0, 9.0],
}  # fmt: skip


def looks(head: dict[str, Any], since: int | None = None, own: int = 0, **change: Any) -> Events:
    """A rank whose first tensor has values of its own from the update of that number on."""
    return [
        head,
        *(
            {
                **LOOK,
                "turn": turn,
                "step": max(turn - 1, 0),
                "backwards": turn,
                "marks": [100 + turn + own * (since is not None and turn >= since), 200 + turn],
                **{name: value(turn) if callable(value) else value for name, value in change.items()},
            }
            for turn in TURNS
        ),
    ]


def of(*ranks: Events) -> RunRecord:
    return RunRecord(tuple(RankRecord(number, tuple(events)) for number, events in enumerate(ranks)))


def seen(detector: Any, record: RunRecord) -> tuple[Evidence, ...]:
    (outcome,) = perform([detector], record)
    assert isinstance(outcome, Observed), outcome
    return outcome.evidence


def slugs(detector: Any, record: RunRecord) -> set[str]:
    (outcome,) = perform([detector], record)
    assert isinstance(outcome, Observed), outcome
    return {finding.fault.slug for finding in weigh.findings([outcome], catalog())}


DIVERGED = {"ranks-diverged"}
CARRIED = {"carried": [0, 1], "groups": [[0, 1]], "averaged": lambda turn: turn, "calls": lambda turn: turn}
PART = {"carried": [1], "groups": [[0, 1]], "averaged": lambda turn: turn, "calls": lambda turn: turn}


@pytest.mark.parametrize(
    ("head", "change", "since", "found"),
    [
        pytest.param(WRAPPED, {}, None, set(), id="wrapped, equal"),
        pytest.param(WRAPPED, {}, 6, DIVERGED, id="wrapped, apart from the sixth update on"),
        pytest.param(WRAPPED, {}, 0, DIVERGED, id="wrapped, apart from the start"),
        pytest.param({**WRAPPED, "hooks": ["post_localSGD_hook"]}, {}, 6, set(), id="a hook of local SGD"),
        pytest.param(WRAPPED, {"weights": 18}, 6, set(), id="weights are exchanged now and then"),
        pytest.param(WRAPPED, {"joins": True}, 6, set(), id="ranks with fewer batches join"),
        pytest.param(WRAPPED, {"squares": [float("nan"), 9.0]}, 6, set(), id="no numbers any more"),
        pytest.param({**WRAPPED, "kinds": "bp"}, {}, 0, DIVERGED, id="a buffer that is not sent round"),
        pytest.param({**WRAPPED, "kinds": "op"}, {}, 1, DIVERGED, id="trained outside of the wrapper"),
        pytest.param(HEAD, {}, 6, set(), id="nobody averages"),
        pytest.param(HEAD, CARRIED, None, set(), id="averaged by hand, equal"),
        pytest.param(HEAD, CARRIED, 0, DIVERGED, id="averaged by hand, never sent round"),
        pytest.param(HEAD, CARRIED, 6, DIVERGED, id="averaged by hand, apart later"),
        pytest.param(HEAD, {**CARRIED, "averaged": lambda turn: turn // 4}, 1, set(), id="each fourth step only"),
        pytest.param({**HEAD, "sizes": [4, 8]}, PART, 1, DIVERGED, id="a part forgotten by hand"),
        pytest.param(HEAD, PART, 1, set(), id="most of the model is each rank's own"),
        pytest.param({**HEAD, "left": 3}, {}, 6, DIVERGED, id="beside sharded tensors, equal until then"),
        pytest.param({**HEAD, "left": 3}, {}, 1, set(), id="beside sharded tensors, never equal"),
    ],
)  # fmt: skip
def test_replicas_that_part(head: dict[str, Any], change: dict[str, Any], since: int | None, found: set[str]) -> None:
    record = of(looks(head, **change), looks(head, since, own=1, **change))
    assert slugs(readings.ranks_diverged, record) == found


def test_replicas_that_come_together_again_are_left_alone() -> None:
    other = looks(WRAPPED)
    for event in other[1:]:
        event["marks"] = [event["marks"][0] + (event["turn"] in (3, 6, 12, 16)), event["marks"][1]]
    assert slugs(readings.ranks_diverged, of(looks(WRAPPED), other)) == set()


def test_the_first_tensor_update_and_what_one_rank_did_are_told() -> None:
    more = looks(WRAPPED, 6, own=1, squares=[1.0, 9.0], clips=lambda turn: turn, clipped=[["t.py", 8]])
    first, *rest = seen(readings.ranks_diverged, of(looks(WRAPPED), more))
    assert (first.place.line, first.place.rank, first.place.step, first.place.module) == (8, 1, 5, "a.weight")
    assert "1 of 2 tensors of Net differ between ranks 0 and 1 after update 6, not yet after update 4" in first.fact
    assert "norms 0.5 of the larger apart" in first.fact
    assert "rank 1 had clipped gradients 6 times by then, rank 0 never" in first.fact
    assert [item.place.line for item in rest] == [9]


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        pytest.param({"settings": [{"lr": 0.2}]}, 5, "lr is 0.1 on rank 0 and 0.2 on rank 1", id="settings"),
        pytest.param({"backwards": lambda turn: 2 * turn}, 9, "rank 1 had 12 backward passes", id="passes"),
        pytest.param({"writes": [2, 0]}, 7, "a.weight was written 2 times more on rank 1", id="writes"),
        pytest.param({"gradients": 2}, 9, "the gradients of this update differ too", id="gradients"),
        pytest.param({}, 9, "the gradients are the same on all ranks", id="nothing else"),
    ],
)
def test_causes_are_named_with_their_line(change: dict[str, Any], line: int, says: str) -> None:
    wrote = {"kind": "written-beside", "step": 3, "path": "t.py", "line": 7, "names": ["a.weight"], "turn": 3}
    first = seen(readings.ranks_diverged, of(looks(WRAPPED), [*looks(WRAPPED, 6, own=1, **change), wrote]))[0]
    assert first.place.line == line
    assert says in first.fact


def test_weights_loaded_on_one_rank_are_the_cause_named_first() -> None:
    loaded = {"kind": "weights-loaded", "step": 0, "path": "t.py", "line": 6, "wrapped": True, "turns": 0}
    first = seen(readings.ranks_diverged, of([loaded, *looks(WRAPPED, 0, own=1)], looks(WRAPPED)))[0]
    assert (first.place.line, first.place.rank) == (6, 0)
    assert "load_state_dict ran here on rank 0 and not on rank 1, after the wrapper" in first.fact


def test_of_more_than_two_ranks_the_odd_one_is_named() -> None:
    head = {**WRAPPED, "over": [0, 1, 2, 3]}
    ranks = [looks(head, 6, own=int(number == 2)) for number in range(4)]
    assert seen(readings.ranks_diverged, of(*ranks))[0].place.rank == 2


def test_ranks_of_different_groups_are_not_compared() -> None:
    ranks = [looks({**WRAPPED, "over": [0, 1] if number < 2 else [2, 3]}, 0, own=number // 2) for number in range(4)]
    assert slugs(readings.ranks_diverged, of(*ranks)) == set()


DIVIDED = {"kind": "divided", "step": 0, "loader": "k", "batch_size": 4, "path": "t.py", "line": 3, "loop": ["t.py", 6],
           "dataset": "Rows", "sampler": "DistributedSampler", "sampled": ["t.py", 2], "num_replicas": 2, "rank": 0}  # fmt: skip


def test_shards_without_one_exchange_are_told() -> None:
    one, other = [DIVIDED, *looks(HEAD)], [DIVIDED, *looks(HEAD, 1, own=1)]
    assert slugs(readings.ranks_diverged, of(one, other)) == DIVERGED
    one, other = [DIVIDED, *looks(HEAD, most=1)], [DIVIDED, *looks(HEAD, 1, own=1, most=1)]  # the loss, for the log
    assert slugs(readings.ranks_diverged, of(one, other)) == DIVERGED
    for beside in ({"kinds": [["gather", 96, 3]], "pairs": 0}, {"kinds": [], "pairs": 4}):
        sent = {"kind": "collectives", "step": 16, **beside}  # federated: weights go to one rank and come back
        assert slugs(readings.ranks_diverged, of([*one, sent], other)) == set()
    one, other = looks(HEAD), looks(HEAD, 1, own=1)  # the data is not divided: an ensemble, or a sweep
    assert slugs(readings.ranks_diverged, of(one, other)) == set()


def test_the_figures_of_divergence_count_what_should_be_equal() -> None:
    told = divergence(of(looks(WRAPPED), looks(WRAPPED, 6, own=1)))
    assert told is not None
    assert told["first"] == {"step": 5, "tensor": "a.weight", "ranks": [0, 1]}
    assert told["looks"][0] == {"step": 0, "differing": 0, "of": 2}
    assert told["looks"][-1] == {"step": 15, "differing": 1, "of": 2}
    assert divergence(of(looks(HEAD), looks(HEAD))) is None


def batches(own: int = 0, learned: bool = True, constant: bool = False, values: int = 32) -> Events:
    """A rank that has read six batches; OWN makes them its own."""
    return [
        DIVIDED,
        *(
            {
                "kind": "shard", "step": number, "loader": "k", "pass": 0, "number": number,
                "backwards": number * learned, "marks": {".0": 5 if constant else 10 * number + own}, "values": [values],
            }
            for number in range(6)
        ),
        *(
            {
                "kind": "inputs", "step": number, "root": "Net", "number": number, "over": [],
                "marks": {".0": 10 * number + own}, "values": [32], "at": ["t.py", 8],
                "backwards": number * learned,
            }
            for number in range(6)
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "one", "other", "found"),
    [
        pytest.param(WRAPPED, batches(), batches(), {"same-data-on-ranks"}, id="the same"),
        pytest.param(WRAPPED, batches(), batches(own=1), set(), id="others"),
        pytest.param(HEAD, batches(), batches(), set(), id="nobody averages"),
        pytest.param(WRAPPED, batches(learned=False), batches(learned=False), set(), id="an evaluation"),
        pytest.param(WRAPPED, batches(constant=True), batches(constant=True), set(), id="constant"),
        pytest.param(WRAPPED, batches(values=64), batches(values=64, own=0), {"same-data-on-ranks"}, id="in parts"),
        pytest.param(WRAPPED, batches()[7:], batches()[7:], {"same-data-on-ranks"}, id="drawn alike, no loader"),
        pytest.param(WRAPPED, batches()[7:], batches(own=1)[7:], set(), id="drawn apart, no loader"),
    ],
)
def test_batches_of_two_ranks(head: dict[str, Any], one: Events, other: Events, found: set[str]) -> None:
    assert slugs(shards.same_data_on_ranks, of([*looks(head), *one], [*looks(head), *other])) == found


def test_a_batch_out_of_which_each_rank_cuts_its_part_is_left_alone() -> None:
    one, other = batches(values=64), batches(values=64)
    for event in other:
        if event["kind"] == "inputs":
            event["marks"] = {".0": event["marks"][".0"] + 1}
    assert slugs(shards.same_data_on_ranks, of([*looks(WRAPPED), *one], [*looks(WRAPPED), *other])) == set()


def test_the_loader_the_sampler_and_the_loop_are_told() -> None:
    items = seen(shards.same_data_on_ranks, of([*looks(WRAPPED), *batches()], [*looks(WRAPPED), *batches()]))
    assert [item.place.line for item in items] == [3, 2, 6]
    assert "6 of 6 batches that were looked at are the same on ranks 0 and 1" in items[0].fact
    assert "was told rank 0 of 2 on both" in items[0].fact


def save(step: int, mark: int = 5) -> dict[str, Any]:
    return {"kind": "save", "step": step, "mark": mark, "file": "last.pt", "path": "t.py", "line": 30}


START = {
    "kind": "start", "step": 0, "host": "one", "world_size": 2, "versions": {"torch": "2.13.0", "python": "3.11.7"},
    "environment": {"WORLD_SIZE": "2"}, "script": {"file": "t.py", "mark": 1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        pytest.param([START, save(9)], [START, save(9)], {"every-rank-saves"}, id="one file"),
        pytest.param([START, save(9)], [START, save(9, mark=6)], set(), id="two files"),
        pytest.param([START, save(9)], [START, save(19)], set(), id="by turns"),
        pytest.param([START, save(9)], [{**START, "host": "two"}, save(9)], set(), id="two hosts"),
        pytest.param([START, save(9)], [START], set(), id="one rank"),
    ],
)
def test_files_that_ranks_save(one: Events, other: Events, found: set[str]) -> None:
    assert slugs(saves.every_rank_saves, of(one, other)) == found


def model(device: str) -> dict[str, Any]:
    return {"kind": "setup", "step": 0, "models": [{"devices": [device]}]}


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        pytest.param([START], [START], None, id="alike"),
        pytest.param([START], [{**START, "world_size": 4}], "the size of the process group is 2 on rank 0", id="size"),
        pytest.param(
            [START],
            [{**START, "versions": {"torch": "2.12.0", "python": "3.11.2"}}],
            "the version of torch",
            id="torch",
        ),
        pytest.param([START], [{**START, "script": {"file": "t.py", "mark": 2}}], "different code", id="another text"),
        pytest.param([START], [{**START, "script": {"file": "u.py", "mark": 2}}], None, id="another script"),
        pytest.param([START, model("cuda:0")], [START, model("cuda:0")], "both have their model on cuda:0", id="card"),
        pytest.param([START, model("cuda:0")], [START, model("cuda:1")], None, id="a card for each"),
        pytest.param([START, model("cpu")], [START, model("cpu")], None, id="no cards"),
        pytest.param(
            [START, model("cuda:0")], [{**START, "host": "two"}, model("cuda:0")], None, id="cards of two hosts"
        ),
        pytest.param(
            [{**START, "environment": {"CUDA_VISIBLE_DEVICES": "0"}}, model("cuda:0")],
            [{**START, "environment": {"CUDA_VISIBLE_DEVICES": "1"}}, model("cuda:0")],
            None,
            id="cards of which each sees one",
        ),
    ],
)
def test_what_ranks_of_one_group_say_alike(one: Events, other: Events, says: str | None) -> None:
    facts = [item.fact for item in seen(launch.launch_environment, of(one, other))]
    assert facts == [] if says is None else says in facts[0]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param({"normalised": 2, "samples": 4}, {"batchnorm-not-synced"}, id="few"),
        pytest.param({"normalised": 2, "samples": 16}, set(), id="enough"),
        pytest.param({"normalised": 0, "samples": 4}, set(), id="no such layer"),
        pytest.param({"normalised": 2, "samples": 4, "root": "Net"}, set(), id="not wrapped"),
    ],
)
def test_layers_that_normalise_by_few_samples(change: dict[str, Any], found: set[str]) -> None:
    event = {"kind": "inputs", "step": 0, "root": "DistributedDataParallel", "number": 0, **change}
    assert slugs(normalising.batchnorm_not_synced, of([WRAPPED, event])) == found


HANDLES = {
    "kind": "handles",
    "step": 9,
    "path": "t.py",
    "line": 7,
    "op": "all_reduce",
    "made": 64,
    "done": 0,
    "waits": 0,
}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param({}, {"handle-not-waited"}, id="dropped"),
        pytest.param({"done": 60}, set(), id="found done"),
        pytest.param({"waits": 8}, set(), id="waited for somewhere"),
        pytest.param({"made": 4}, set(), id="few"),
    ],
)
def test_handles_that_nobody_waits_for_are_told_instead_of_what_they_do_to_the_weights(
    change: dict[str, Any], found: set[str]
) -> None:
    event = {**HANDLES, **change}
    assert slugs(handles.handle_not_waited, of([event], [event])) == found
    parted = of([*looks(WRAPPED), event], [*looks(WRAPPED, 1, 1), event])
    assert slugs(readings.ranks_diverged, parted) == (set() if found else DIVERGED)


FSDP = {"kind": "inputs", "step": 0, "root": "Net", "number": 0, "over": [[0, 1]], "marks": {}, "values": []}
EXPERTS = {"kind": "collectives", "step": 9, "kinds": [["alltoall_base", 64, 9]]}


@pytest.mark.parametrize(
    ("head", "events", "found"),
    [
        pytest.param({"left": 20}, [FSDP], DIVERGED, id="beside what is sharded"),
        pytest.param({"left": 0}, [FSDP], set(), id="nothing is sharded"),
        pytest.param({"left": 20}, [], set(), id="tensor parallel"),
        pytest.param({"left": 20}, [FSDP, EXPERTS], set(), id="experts of each rank"),
        pytest.param({"left": 20}, [{**FSDP, "over": [[0, 2]]}], set(), id="other ranks"),
    ],
)
def test_whole_tensors_beside_those_that_fsdp_shards_must_be_averaged_by_somebody(
    head: dict[str, Any], events: Events, found: set[str]
) -> None:
    one, other = ([*looks({**HEAD, **head}, 1, own), *events] for own in (0, 1))
    assert slugs(readings.ranks_diverged, of(one, other)) == found


@pytest.mark.parametrize(
    ("pieces", "sizes", "numbers"),
    [
        ([12], [3, 4, 5, 6], {0, 1, 2}),
        ([11], [3, 4, 5, 6], {2, 3}),
        ([11, 7], [3, 4, 5, 6], {0, 1, 2, 3}),
        ([5], [3, 4, 5, 6], set()),
        ([8], [4, 4, 4], set()),
        ([99], [3, 4], set()),
        ([], [3, 4], set()),
    ],
    ids=["first", "last", "all", "one-alone", "several-fit", "none-fits", "nothing-sent"],
)
def test_a_bucket_is_known_by_the_only_neighbours_that_fill_it(
    pieces: list[int], sizes: list[int], numbers: set[int]
) -> None:
    assert _carried._in_buckets(pieces, sizes) == numbers


STEP_OF_MARKS = 2**62 // 512
PASS = {
    "kind": "pass", "step": 9, "loader": "k", "of": 32, "batches": 32, "samples": 512,
    "kept": [number * STEP_OF_MARKS for number in range(1, 129)],
}  # fmt: skip
OTHERS = [number * STEP_OF_MARKS + 7 for number in range(1, 129)]


@pytest.mark.parametrize(
    ("mine", "theirs", "found"),
    [
        pytest.param({}, {}, {"same-data-on-ranks"}, id="the same samples"),
        pytest.param({}, {"kept": OTHERS}, set(), id="other samples"),
        pytest.param({}, {"kept": [*PASS["kept"][:64], *OTHERS[64:]]}, set(), id="half of them"),
        pytest.param({}, {"batches": 20}, set(), id="not to its end"),
        pytest.param({}, {"samples": 500}, set(), id="another number"),
        pytest.param({"samples": 5000}, {"samples": 5000}, set(), id="many are alike"),
        pytest.param({"kept": PASS["kept"][:40]}, {"kept": PASS["kept"][:40]}, set(), id="few"),
    ],
)
def test_passes_over_the_same_samples_are_told_in_whatever_order(
    mine: dict[str, Any], theirs: dict[str, Any], found: set[str]
) -> None:
    one = [*looks(WRAPPED), *batches(), {**PASS, **mine}]
    other = [*looks(WRAPPED), *batches(own=1), {**PASS, **theirs}]
    assert slugs(shards.same_data_on_ranks, of(one, other)) == found
