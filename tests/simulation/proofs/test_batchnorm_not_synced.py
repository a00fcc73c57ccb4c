"""Two samples a rank have statistics of their own; added up over the ranks they are those of the whole batch."""

from __future__ import annotations

import pytest

BODY = """
import copy

from torch import nn
from torch.utils.data import TensorDataset

images = torch.randn(4, 3, 6, 6, generator=torch.Generator().manual_seed(1))
torch.manual_seed(0)
model, loader = shown.build(TensorDataset(images), rank)
start = copy.deepcopy(model.module)
whole = nn.Sequential(start[0], nn.BatchNorm2d(32), start[2], start[3]).to(rank)

((batch,),) = [[each.to(rank) for each in batch] for batch in loader]
for each, inputs in ((model, batch), (whole, images.to(rank))):
    each(inputs).square().mean().backward()


def distance(pairs):
    return max(float((one - other).abs().max() / other.abs().max()) for one, other in pairs)


one, other = model.module, whole
result = {
    "statistics": distance([(one[1].running_mean, other[1].running_mean), (one[1].running_var, other[1].running_var)]),
    "gradients": distance([(one[number].weight.grad, other[number].weight.grad) for number in (0, 1)]),
    "figures": one[1].running_mean.tolist(),
}
"""


def test_ranks_train_like_one_process_with_the_whole_batch_only_where_they_share_their_statistics(ranks) -> None:
    found = ranks("batchnorm-not-synced", BODY)
    for each in found["Bad"]:
        assert each["statistics"] > 0.05
        assert each["gradients"] > 0.01
    for each in found["Good"]:
        assert each["statistics"] < 1e-5
        assert each["gradients"] < 1e-4
    assert found["Good"][0]["figures"] == pytest.approx(found["Good"][1]["figures"])
    assert found["Bad"][0]["figures"] != pytest.approx(found["Bad"][1]["figures"], rel=0.01)
