"""A parameter without a gradient ends the second step; the search lets it pass, and is made whether needed or not."""

from __future__ import annotations

UNUSED = """
torch.manual_seed(0)
replica = shown.wrapped()
replica.module.spare = torch.nn.Linear(2, 2)
wrapped = torch.nn.parallel.DistributedDataParallel(
    replica.module, find_unused_parameters=replica.find_unused_parameters
)
result = ""
layers = list(replica.module)[:-1]
replica.module.forward = lambda x: [x := layer(x) for layer in layers][-1]
try:
    shown.train(wrapped, 2)
except RuntimeError as error:
    result = str(error)[:54]
"""

SEARCHED = """
replica = shown.wrapped()
shown.train(replica, 3)
told = replica._get_ddp_logging_data()
result = [told["find_unused_parameters"], told["unused_parameter_size"]]
"""


def test_a_parameter_without_a_gradient_ends_a_job_that_does_not_search(ranks) -> None:
    found = ranks("unused-parameters", UNUSED)
    assert found["Bad"] == ["", ""]
    assert found["Good"] == ["Expected to have finished reduction in the prior itera"] * 2


def test_the_search_is_made_where_nothing_is_unused(ranks) -> None:
    found = ranks("unused-parameters", SEARCHED)
    assert (found["Bad"], found["Good"]) == ([[1, 0], [1, 0]], [[0, 0], [0, 0]])
