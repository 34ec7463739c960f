"""What deletions cost, against loops over pairs of neighbors."""

import pytest
import torch

from suffice.attribution.igos.objective import BilateralVariation, amount, together, total_variation
from tests.attribution.igos.twin import sure_cnn, twin_of
from tests.attribution.nets import pictures

OPTIONS = {"size": 6, "steps": 3, "l1": 0.05, "l2": 0.2}


@pytest.mark.parametrize("btv", ["gray", "channels", "asymmetric"])
def test_bilateral_variation_is_that_of_the_formula(btv):
    net, images = sure_cnn(torch.float64), pictures(2)
    images = 0.4 + images / 20  # flat enough for the weights to differ
    cells = torch.rand(2, 6, 6, dtype=torch.float64)
    found = BilateralVariation(images.double(), btv)(torch.tensor([1, 0]), cells)
    for row, index in enumerate([1, 0]):
        twin = twin_of("igos++", net, images, index, btv=btv, **OPTIONS)
        torch.testing.assert_close(found[row], twin.bilateral_tv(1 - cells[row]))


def test_plain_variation_and_amount_are_those_of_the_formula():
    net, images = sure_cnn(torch.float64), pictures(1)
    cells = torch.rand(3, 6, 6, dtype=torch.float64)
    twin = twin_of("i-gos", net, images, 0, **OPTIONS)
    torch.testing.assert_close(total_variation(cells), torch.stack([twin.plain_tv(1 - own) for own in cells]))
    torch.testing.assert_close(amount(cells), cells.mean(dim=(1, 2)))
    assert total_variation(torch.rand(2, 1, 1)).tolist() == [0, 0]  # one cell has no neighbors


def test_planes_delete_together_by_the_product_of_what_they_keep():
    planes = torch.rand(4, 3, 5, 5, dtype=torch.float64)
    torch.testing.assert_close(together(planes), 1 - (1 - planes).prod(dim=1))
    tiny = torch.full((1, 2, 1, 1), 1e-12)
    torch.testing.assert_close(together(tiny), torch.full((1, 1, 1), 2e-12), rtol=1e-5, atol=0)  # not rounded away
