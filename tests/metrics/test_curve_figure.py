"""The drawing of mean curves: what is in it, and that nothing leaves it."""

from xml.etree import ElementTree

import pytest
import torch

from suffice.metrics import Curves, Outcome
from suffice.metrics.curve_figure import HEIGHT, LEFT, TOP, WIDTH, curve_figure

X = torch.linspace(0, 1, 5, dtype=torch.float64)
WEIGHTS = torch.full((5,), 0.2, dtype=torch.float64)


def outcome(y):
    """Curves [N, 5] as a metric makes them."""
    curves = Curves(X, y, y[:, -1], y[:, 0], WEIGHTS)
    return Outcome(curves.areas(y), curves)


def drawn(outcomes, **options):
    return ElementTree.fromstring(curve_figure(outcomes, **options))


def parts(drawing, name):
    return [part for part in drawing.iter() if part.tag == f"{{http://www.w3.org/2000/svg}}{name}"]


def words(drawing):
    return [part.text for part in parts(drawing, "text")]


def points(part):
    return torch.tensor([[float(n) for n in pair.split(",")] for pair in part.get("points").split()])


def test_the_line_is_the_mean_and_the_band_its_standard_error():
    y = torch.tensor([[0.0, 0.2, 0.4, 0.6, 0.8], [0.2, 0.4, 0.6, 0.8, 1.0]])
    drawing = drawn({"insertion": outcome(y)})
    (line,), (band,) = parts(drawing, "polyline"), parts(drawing, "polygon")
    mean, error = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9]), 0.1
    across = LEFT + WIDTH * X.float()
    torch.testing.assert_close(points(line), torch.stack([across, TOP + HEIGHT * (1 - mean)], 1), rtol=0, atol=0.06)
    edges = torch.cat([mean + error, (mean - error).flip(0)])
    expected = torch.stack([torch.cat([across, across.flip(0)]), TOP + HEIGHT * (1 - edges)], 1)
    torch.testing.assert_close(points(band), expected, rtol=0, atol=0.06)
    assert "Mean over 2 images, with one standard error to both sides" in words(drawing)
    assert {"insertion", "0.500 ± 0.100", "0", "0.25", "1", "100%"} <= set(words(drawing))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.1, 0.6, ["0", "0.25", "0.5", "0.75", "1"]),
        (-0.01, 1.01, ["0", "0.25", "0.5", "0.75", "1"]),
        (0.0, 1.4, ["0", "0.25", "0.5", "0.75", "1", "1.25", "1.5"]),
        (-0.7, 1.0, ["-0.75", "-0.5", "-0.25", "0", "0.25", "0.5", "0.75", "1"]),
        (0.0, 70.0, ["0", "10", "20", "30", "40", "50", "60", "70"]),
    ],
)
def test_the_frame_holds_what_goes_beyond_0_and_1(low, high, ticks):
    y = torch.linspace(low, high, 5).expand(1, 5)
    drawing = drawn({"insertion": outcome(y)})
    assert [word for word in words(drawing) if word in ticks] == ticks
    (line,) = parts(drawing, "polyline")
    heights = points(line)[:, 1]
    slack = 0.02 * HEIGHT
    assert TOP - slack <= float(heights.min()) <= float(heights.max()) <= TOP + HEIGHT + slack


def test_every_curve_has_a_line_and_a_name_within_the_picture():
    many = {f"metric number {i} with a name too long to fit": outcome(torch.rand(3, 5)) for i in range(12)}
    drawing = drawn(many)
    width, height = (float(drawing.get(side)) for side in ("width", "height"))
    for part in parts(drawing, "text"):
        assert 0 <= float(part.get("x")) < width
        assert 0 <= float(part.get("y")) < height
    looks = {(line.get("stroke"), line.get("stroke-dasharray")) for line in parts(drawing, "polyline")}
    assert len(looks) == 12
    assert sum(word.startswith("metric num") for word in words(drawing)) == 12


def test_one_image_and_none_that_was_judged():
    drawing = drawn({"aic": outcome(torch.full((2, 5), torch.nan)), "sic": outcome(torch.rand(2, 5))})
    assert words(drawing).count("no image judged") == 1
    assert len(parts(drawing, "polyline")) == 1
    assert "nan" not in curve_figure({"aic": outcome(torch.full((2, 5), torch.nan))})
    alone = drawn({"insertion": outcome(torch.full((1, 5), 0.25))}, across="information", up="accuracy")
    assert {"One image", "0.250", "information", "accuracy"} <= set(words(alone))


def test_names_are_text_and_not_markup():
    drawing = drawn({"a<b>&": outcome(torch.rand(2, 5)), "no curves": Outcome(torch.rand(2))})
    assert "a<b>&" in words(drawing)
    assert "no curves" not in words(drawing)
