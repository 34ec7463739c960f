"""Zero-shot classifiers: classes are texts, and an image belongs to the class whose text it is most like.

CLIP and SigLIP have a tower for images and one for texts. The texts of a classifier do not change, so their features
are computed once; what is left is a module from images to class scores, as any other classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from suffice.errors import OptionError
from suffice.vision.anatomy.trace import first_tensor

TEXTS_AT_ONCE = 256
WHOLE = "{}"  # the prompt of labels that are whole texts already

Encode = Callable[[list[str]], Tensor]


class ZeroShot(nn.Module):
    """The image tower of a model with two towers, and the features of one text for each class.

    The logit of a class is ``scale * cosine + bias``, of the cosine between the features of the image and of the text.

    Args:
        vision: From normalized images [N, 3, H, W] to features [N, C]: a tensor, a tuple that begins with one, or an
            output of transformers that has them as ``pooler_output``.
        projection: From there to the features that texts have as well, [N, D].
        texts: Features of the texts [classes, D], each of length 1; see :func:`text_features`.
        scale: Factor of the cosine.
        bias: What is added; CLIP has none.

    Example:
        >>> vision = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        >>> module = ZeroShot(vision, nn.Identity(), torch.eye(3), scale=10.0)
        >>> module(torch.tensor([3.0, 0.0, 4.0]).view(1, 3, 1, 1))
        tensor([[6., 0., 8.]])
    """

    texts: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(
        self, vision: nn.Module, projection: nn.Module, texts: Tensor, scale: float, bias: float = 0.0
    ) -> None:
        super().__init__()
        self.vision, self.projection = vision, projection
        # Saved with the weights: a classifier of other texts is another model, also to whoever compares hashes.
        self.register_buffer("texts", texts)
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("bias", torch.tensor(bias))

    def forward(self, images: Tensor) -> Tensor:
        """Logits [N, classes] of normalized images [N, 3, H, W]."""
        seen = self.vision(images)
        pooled = getattr(seen, "pooler_output", None)
        features = self.projection(first_tensor(seen) if pooled is None else pooled)
        return F.normalize(features, dim=-1) @ self.texts.T * self.scale + self.bias


def class_texts(labels: Sequence[str] | None, prompt: str | Sequence[str] | None, name: str) -> list[list[str]]:
    """The texts of each class: its label in each of the prompts.

    Args:
        labels: Name of each class.
        prompt: A text with ``{}`` where the label goes, several of them, or None where labels are whole texts.
        name: Of the model, for errors.

    Example:
        >>> class_texts(["cat", "dog"], ["a photo of a {}", "a drawing of a {}"], "clip")[1]
        ['a photo of a dog', 'a drawing of a dog']
    """
    if labels is None or isinstance(labels, str) or not labels:
        raise OptionError(
            f"{name} has no classes of its own: name them, as in labels=['cat', 'dog'], prompt='a photo of a {{}}'."
        )
    prompts = [prompt] if isinstance(prompt, str) else [WHOLE] if prompt is None else list(prompt)
    if not prompts:
        raise OptionError("prompt= is empty; leave it out where labels are whole texts.")
    if wrong := [p for p in prompts if p.count("{}") != 1]:
        raise OptionError(
            f"prompt= {wrong[0]!r} has {wrong[0].count('{}')} places for the label; write one {{}} in it."
        )
    return [[p.replace("{}", str(label)) for p in prompts] for label in labels]


@torch.no_grad()
def text_features(texts: Sequence[Sequence[str]], encode: Encode) -> Tensor:
    """Features [classes, D] of the texts of each class, each of length 1.

    Of several texts the features, each of length 1, are averaged, as CLIP's own ensembles of prompts are.

    Args:
        texts: As many for each class.
        encode: From some texts to their features [texts, D].
    """
    flat = [text for own in texts for text in own]
    parts = [encode(flat[start : start + TEXTS_AT_ONCE]) for start in range(0, len(flat), TEXTS_AT_ONCE)]
    features = F.normalize(torch.cat(parts).float(), dim=-1)
    return F.normalize(features.unflatten(0, (len(texts), -1)).mean(dim=1), dim=-1)
