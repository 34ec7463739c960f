"""Class scores are found in whatever models return."""

from collections import OrderedDict, namedtuple
from types import SimpleNamespace

import pytest
import torch

from suffice.errors import OutputError
from suffice.vision.outputs import class_scores

SCORES = torch.rand(2, 10)
Inception = namedtuple("Inception", ["logits", "aux_logits"])


@pytest.mark.parametrize(
    "output",
    [
        SCORES,
        (SCORES, torch.rand(2, 5, 3)),
        [torch.tensor(0.5), SCORES],
        {"logits": SCORES},
        {"loss": torch.tensor(1.0), "features": torch.rand(2, 3), "logits": SCORES},
        OrderedDict(out=SCORES),
        {"anything": SCORES},
        Inception(SCORES, torch.rand(2, 10)),
        SimpleNamespace(logits=SCORES, hidden_states=None),
    ],
)
def test_found(output):
    assert class_scores(output) is SCORES


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (torch.rand(10), r"shape \[10\]"),
        (torch.rand(2, 10, 7, 7), r"shape \[2, 10, 7, 7\]"),
        ({"a": SCORES, "b": SCORES}, r"keys \['a', 'b'\]"),
        ((), "a tuple of"),
        (None, "NoneType"),
        ("text", "str"),
    ],
)
def test_not_guessed(output, said):
    with pytest.raises(OutputError, match=said):
        class_scores(output)


def test_model_output_of_transformers():
    outputs = pytest.importorskip("transformers.modeling_outputs")
    assert class_scores(outputs.ImageClassifierOutput(logits=SCORES)) is SCORES
