"""A classifier with a known reason: it says whether a cell of its grid is red, wherever that is."""

import torch
from torch import nn

from suffice.vision import Classifier

CELL, GRID = 4, 6
SIZE = CELL * GRID


class RedCell(nn.Module):
    """Sure of class 1 where the reddest cell is red, of class 0 where none is."""

    def __init__(self):
        super().__init__()
        self.register_buffer("slope", torch.tensor(12.0))

    def forward(self, x):
        red = x[:, 0] - x[:, 1:].mean(dim=1)
        odds = self.slope * (nn.functional.avg_pool2d(red[:, None], CELL).flatten(1).amax(dim=1) - 0.4)
        return torch.stack([-odds, odds], dim=1)


def red_cell():
    return Classifier(RedCell().eval(), size=SIZE, mean=(0.0,) * 3, std=(1.0,) * 3, name="red-cell")


def small_trunk():
    """An untrained convolutional network to learn to explain with; its maps have the cells of the grid."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 12, CELL, stride=CELL),
        nn.ReLU(),
        nn.Conv2d(12, 12, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 2),
    )
    return Classifier(module, size=SIZE, mean=(0.5,) * 3, std=(0.5,) * 3, name="small-trunk")


def marked_images(count, seed):
    """Gray noise with one red cell each, [N, 3, SIZE, SIZE], and the cells [N]; every cell as likely as the others."""
    generator = torch.Generator().manual_seed(seed)
    gray = 0.3 + 0.4 * torch.rand(count, 1, SIZE, SIZE, generator=generator).expand(-1, 3, -1, -1).clone()
    cells = torch.randint(0, GRID * GRID, (count,), generator=generator)
    for image, cell in zip(gray, cells.tolist(), strict=True):
        row, column = divmod(cell, GRID)
        image[:, row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL] = torch.tensor(
            [0.9, 0.1, 0.1]
        ).view(3, 1, 1)
    return (gray * 255).round() / 255, cells
