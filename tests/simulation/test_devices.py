"""What torch finds: the device, its module, its generators; and what it refuses."""

from __future__ import annotations

import copy
import io
import os
import re
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchtriage import simulation
from torchtriage.simulation import SimulationError, Simulator


def test_it_tells_how_much_of_the_time_its_kernels_run(simulator: Simulator) -> None:
    simulator.costs = simulation.Costs.free(kernels={"add": 300})
    numbers = torch.ones(4, device="sim")
    torch.accelerator.synchronize()
    torch.get_device_module("sim").utilization()
    numbers.add(1)
    torch.accelerator.synchronize()
    simulator.host(690)
    assert torch.get_device_module("sim").utilization() == 30
    numbers.add(1)
    assert torch.get_device_module("sim").utilization() == 0  # it has been launched, and no time has passed since
    simulator.host(150)
    assert torch.get_device_module("sim").utilization() == 100
    assert torch.get_device_module("sim").utilization("sim:1") == 0


REFUSED: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], object], str]] = {
    "a sum": (lambda x, c: x + c, "found at least two devices, sim:0 and cpu!"),
    "a sum of the host": (lambda x, c: c + x, "found at least two devices, cpu and sim:0!"),
    "in place": (lambda x, c: x.addcmul_(c, x), "found at least two devices, sim:0 and cpu!"),
    "where": (lambda x, c: torch.where(x > 0, x, c), "found at least two devices, sim:0 and cpu!"),
    "masked_fill": (lambda x, c: x.masked_fill(c > 0, 0), "found at least two devices, sim:0 and cpu!"),
    "a loss": (functional.mse_loss, "found at least two devices, sim:0 and cpu!"),
    "devices": (lambda x, c: x + x.to("sim:1"), "found at least two devices, sim:0 and sim:1!"),
    "a product": (lambda x, c: x @ c, "but got mat2 is on cpu, different from other tensors on sim:0"),
    "a layer": (
        lambda x, c: functional.linear(c, x, x[0]),
        "but got mat1 is on cpu, different from other tensors on sim:0",
    ),
    "an embedding": (lambda x, c: functional.embedding(c.long(), x), "but got index is on cpu"),
    "a gather": (lambda x, c: x.gather(0, c.long()), "but got index is on cpu"),
    "targets": (lambda x, c: functional.cross_entropy(x, c[0].long()), "but got target is on cpu"),
    "cat": (lambda x, c: torch.cat([x, c]), "but got tensors is on cpu"),
    "a number in a product": (
        lambda x, c: torch.addmm(c[0, 0], x, x),
        "but got mat1 is on sim:0, different from other tensors on cpu",
    ),
    "a convolution": (
        lambda x, c: functional.conv1d(c[None], x[..., None]),
        r"Input type \(torch.FloatTensor\) and weight type \(.*\) should be the same or input should be a MKLDNN tensor",
    ),
    "a generator": (
        lambda x, c: torch.rand(2, device="sim", generator=torch.Generator()),
        "Expected a 'sim' device type for generator but found 'cpu'",
    ),
}

ALLOWED: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "a number of the host": lambda x, c: x + c[0, 0],
    "a number of the host first": lambda x, c: c[0, 0] * x,
    "a filling": lambda x, c: x.masked_fill(x > 0, c[0, 0]),
    "a choice": lambda x, c: torch.where(x > 0, x, c[0, 0]),
    "indices": lambda x, c: x[c[0].long()],
    "an assignment": lambda x, c: x.clone().index_put_((c[0].long(),), c[0, 0]),
    "a copy": lambda x, c: (x.copy_(c), c.copy_(x)),
    "a learning rate": lambda x, c: torch.optim.SGD([nn.Parameter(x)], lr=torch.tensor(0.1)).step(),
    "copies of many": lambda x, c: torch._foreach_copy_([x, x], [c, c]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_tensors_of_different_devices_are_refused_in_torchs_words(simulator: Simulator, what: str) -> None:
    call, words = REFUSED[what]
    with pytest.raises(RuntimeError, match=words if ".*" in words else re.escape(words)):
        call(torch.ones(4, 4, device="sim"), torch.ones(4, 4))


@pytest.mark.parametrize("what", ALLOWED)
def test_what_cuda_takes_from_the_host_is_taken(simulator: Simulator, what: str) -> None:
    ALLOWED[what](torch.ones(4, 4, device="sim"), torch.ones(4, 4))


def test_torch_finds_the_accelerator(simulator: Simulator) -> None:
    assert torch.accelerator.current_accelerator() == torch.device("sim")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.sim.device_count() == 2
    assert torch.get_device_module("sim") is torch.sim
    assert torch.ones(1, device="sim").device == torch.device("sim", 0)
    assert torch.ones(1).sim().is_sim
    assert torch.sim.is_available()
    assert torch.sim.is_initialized()
    assert torch.sim.get_device_name() == "Simulated accelerator"
    assert torch.sim.get_device_properties(1).total_memory == 16 * 2**30


def test_the_current_device_is_where_new_tensors_are(simulator: Simulator) -> None:
    with torch.sim.device(1):
        assert torch.sim.current_device() == torch.accelerator.current_device_index() == 1
        assert torch.ones(1, device="sim").device.index == 1
    torch.sim.set_device("sim:0")
    assert torch.ones(1, device="sim").device.index == 0
    with torch.device("sim:1"):
        assert nn.Linear(1, 1).weight.device.index == 1
    with pytest.raises(RuntimeError, match="there is no device sim:2"):
        torch.ones(1, device="sim:2")


def test_streams_are_those_that_torch_accelerator_knows(simulator: Simulator) -> None:
    side = torch.sim.Stream()
    assert torch.sim.current_stream() == torch.sim.default_stream() == torch.accelerator.current_stream()
    with torch.sim.stream(side):
        assert torch.accelerator.current_stream() == side
    torch.sim.set_stream(side)
    assert torch.sim.current_stream() == side
    torch.sim.set_stream(torch.sim.default_stream())
    assert side.query()


@pytest.mark.parametrize("draw", [torch.rand, torch.randn, lambda size, **on: torch.randint(100, size, **on)])
def test_a_generator_draws_the_numbers_of_the_cpus(simulator: Simulator, draw: Callable[..., torch.Tensor]) -> None:
    ours, theirs = torch.Generator("sim").manual_seed(5), torch.Generator().manual_seed(5)
    for _ in range(2):
        assert draw((7,), device="sim", generator=ours).tolist() == draw((7,), generator=theirs).tolist()
    state = ours.get_state()
    again = draw((7,), device="sim", generator=ours)
    assert torch.equal(draw((7,), device="sim", generator=ours.set_state(state)), again)
    assert ours.device == torch.device("sim", 0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda on: torch.rand(5, device=on),
        lambda on: torch.randperm(9, device=on),
        lambda on: torch.empty(5, device=on).exponential_(),
        lambda on: torch.bernoulli(torch.full((50,), 0.5, device=on)),
        lambda on: torch.multinomial(torch.ones(9, device=on), 4),
        lambda on: functional.dropout(torch.ones(50, device=on)),
        lambda on: nn.init.trunc_normal_(torch.empty(5, device=on)),
    ],
)
def test_seeding_torch_seeds_the_devices(simulator: Simulator, draw: Callable[[str], torch.Tensor]) -> None:
    found = []
    for device in ("cpu", "sim", "sim:1"):
        torch.manual_seed(3)
        found.append(draw(device).tolist())
        found.append(draw(device).tolist())
    assert found[:2] == found[2:4] == found[4:]
    assert found[0] != found[1]


def test_the_host_and_the_device_draw_from_generators_of_their_own(simulator: Simulator) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3).tolist()
    torch.manual_seed(3)
    functional.dropout(torch.ones(50, device="sim"))
    torch.randn(3, device="sim:1")
    assert torch.rand(3).tolist() == expected


def test_the_state_of_random_numbers_is_kept_and_restored(simulator: Simulator) -> None:
    state = torch.sim.get_rng_state()
    first = torch.rand(3, device="sim")
    torch.sim.set_rng_state(state)
    with torch.random.fork_rng(devices=[0], device_type="sim"):
        assert torch.equal(torch.rand(3, device="sim"), first)
    assert torch.equal(torch.rand(3, device="sim"), first)
    torch.sim.manual_seed(9)
    assert torch.sim.initial_seed() == 9


def test_tensors_and_modules_are_saved_loaded_and_copied(simulator: Simulator) -> None:
    model = nn.Linear(3, 3).to("sim:1")
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    for where, expected in ((None, "sim:1"), ("cpu", "cpu"), ("sim:0", "sim:0")):
        file.seek(0)
        read = torch.load(file, map_location=where)["weight"]
        assert read.device == torch.device(expected)
        assert torch.equal(read.cpu(), model.weight.cpu())
    copied = copy.deepcopy(model)
    assert copied.weight.device == torch.device("sim:1")
    assert copied.weight.data_ptr() != model.weight.data_ptr()


def test_a_forked_child_has_no_device(simulator: Simulator) -> None:
    x = torch.ones(2, device="sim")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = f"{torch.sim.is_available()} {torch.sim._is_in_bad_fork()} "
            torch.manual_seed(0)
            x.add_(1)
        except RuntimeError as error:
            said += str(error)
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(read, 2000).decode()
    os.close(read)
    os.close(write)
    assert said.startswith("False True Cannot re-initialize sim in forked subprocess.")


def test_the_number_of_devices_stays(simulator: Simulator) -> None:
    with pytest.raises(SimulationError, match=r"2 simulated devices were started before.*Start a new process"):
        simulation.start(devices=3)
    with pytest.raises(SimulationError, match="use 1 to 16"):
        simulation.start(devices=0)
