"""Show a transformer only some of its patch tokens, by leaving the others out for real.

After patches and positions are embedded, the tokens of a plain vision transformer are a set: its blocks take any
number of them. Half the tokens cost less than half the work, and unlike hidden pixels they leave no trace.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from suffice.errors import AnatomyError
from suffice.perturb.runner import Runner
from suffice.vision.outputs import class_scores

# Nothing after the first block of these depends on where a token is or how many there are.
_SETS_OF_TOKENS = (
    ("timm.models.vision_transformer", "VisionTransformer"),
    ("torchvision.models.vision_transformer", "VisionTransformer"),
    ("transformers.models.vit.modeling_vit", "ViTForImageClassification"),
    ("transformers.models.deit.modeling_deit", "DeiTForImageClassification"),
    ("transformers.models.deit.modeling_deit", "DeiTForImageClassificationWithTeacher"),
    ("transformers.models.clip.modeling_clip", "CLIPVisionModel"),
    ("transformers.models.clip.modeling_clip", "CLIPVisionTransformer"),  # the same before version 5
    ("transformers.models.siglip.modeling_siglip", "SiglipVisionModel"),
    ("transformers.models.siglip.modeling_siglip", "SiglipVisionTransformer"),
    ("open_clip.transformer", "VisionTransformer"),
)

Ask = Callable[[Tensor, Tensor], Tensor]
# Made once for each runner, as what is compiled is.
_of_runners: WeakKeyDictionary[Runner, _FromTokens] = WeakKeyDictionary()


def can_drop_tokens(module: nn.Module) -> bool:
    """Whether a model is, or holds, a transformer whose tokens can be left out.

    That is so for timm's ``VisionTransformer`` (ViT, DeiT, with distillation or registers), torchvision's, ViT and DeiT
    of transformers, and the image towers of CLIP and SigLIP. Windows, pooling between stages, and positions inside the
    attention stand against it.
    """
    kinds = [getattr(sys.modules.get(home), name, None) for home, name in _SETS_OF_TOKENS]
    known = tuple(kind for kind in kinds if kind is not None)
    return any(isinstance(part, known) for part in module.modules())


@contextmanager
def token_dropping(runner: Runner, inputs: Tensor) -> Iterator[Ask]:
    """Ask a model about images of which it sees only some patch tokens.

    Patches of the normalized images [B, 3, H, W] are embedded once. Then the model runs as it always does, in the
    runner's precision, compiled where the runner is (once for each number of tokens), except that its first block is
    given the tokens kept instead of all; class, distillation and register tokens always stay. The runner's module
    itself is not changed.

    Yields ``ask(images, kept)``, from which image each question is about, [K] int64 with K at most the batch size, and
    which patch tokens to keep of it, [K, n] int64 row by row, to logits [K, classes] float32.

    Example:
        >>> import timm, suffice
        >>> vit, half = timm.create_model("vit_tiny_patch16_224"), (0.5, 0.5, 0.5)
        >>> runner = Runner(suffice.Classifier(vit, size=224, mean=half, std=half))
        >>> with token_dropping(runner, torch.rand(1, 3, 224, 224)) as ask:
        ...     ask(torch.tensor([0]), torch.arange(0, 196, 2)[None]).shape
        torch.Size([1, 1000])
    """
    anatomy = runner.net.anatomy
    with torch.no_grad(), runner.net.evaluating(), runner.arithmetic():
        if runner not in _of_runners:
            _of_runners[runner] = _FromTokens(runner.module, anatomy.blocks[0])
        model = _of_runners[runner]

        def embedded(rows: slice) -> Tensor:
            runner.counters.count(rows.stop - rows.start)
            return model.embedded(inputs[rows].to(runner.dtype))

        tokens = torch.cat(list(runner.run(len(inputs), embedded)))
        # What comes before the first block need not run again: one image stands for all.
        stand_in = inputs[:1].to(runner.dtype)
        prefix = torch.arange(anatomy.prefix_tokens, device=tokens.device)
        forward = runner.fused(model.forward)

        def ask(images: Tensor, kept: Tensor) -> Tensor:
            count = len(images)
            runner.counters.count(count)
            images, kept = runner.padded(images), runner.padded(kept)
            chosen = torch.cat([prefix.expand(len(kept), -1), kept + len(prefix)], dim=1)
            try:
                logits = forward(tokens[images[:, None], chosen], stand_in)
            finally:
                model.entrance.given.clear()  # also after an error, of memory, say
            if len(logits) != len(images):
                raise AnatomyError(
                    f"{runner.net.name} was given {len(images)} sets of tokens and put out {len(logits)} rows "
                    "of scores, so something besides its blocks looks at the images; its tokens cannot be left out"
                )
            return logits[:count]

        yield ask


class _FromTokens:
    """A model that goes on from given tokens; it shares all layers with the one that it is made of.

    Attributes:
        forward: From tokens [K, n, C] and one normalized image, which changes nothing, to logits [K, classes] float32.
    """

    def __init__(self, module: nn.Module, block: str) -> None:
        self.entrance = entrance = _Entrance(module.get_submodule(block))
        self.module = model = _with_part(module, block.split("."), entrance)
        given = entrance.given

        def forward(tokens: Tensor, stand_in: Tensor) -> Tensor:
            given.append(tokens)
            logits = class_scores(model(stand_in)).float()
            given.clear()
            return logits

        self.forward = forward

    def embedded(self, inputs: Tensor) -> Tensor:
        """Tokens [B, N, C] that the first block is given; the model runs no further."""
        self.entrance.given.clear()
        try:
            self.module(inputs)
        except _ReachedError as reached:
            return reached.tokens
        raise AnatomyError(f"{type(self.module).__name__} does not run its first block")


class _Entrance(nn.Module):
    """The first block, given other tokens than those that come; where there are none, it hands out what comes."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block
        self.given: list[Tensor] = []
        self.eval()

    def __getattr__(self, name: str) -> Any:
        """What others may want to know of the block."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("block"), name)

    def forward(self, tokens: Any = None, *args: Any, **kwargs: Any) -> Any:
        """What the block makes of the tokens given."""
        if not isinstance(tokens, Tensor):
            kind = type(self.block).__name__
            raise AnatomyError(f"the first block, a {kind}, is not given its tokens as first argument")
        if not self.given:
            raise _ReachedError(tokens)
        return self.block(self.given[-1], *args, **kwargs)


class _ReachedError(Exception):
    def __init__(self, tokens: Tensor) -> None:
        self.tokens = tokens


def _with_part(module: nn.Module, path: list[str], part: nn.Module) -> nn.Module:
    """The same module with another part at a path; only what lies on the way is copied, and that not deeply."""
    if not path:
        return part
    made = copy.copy(module)
    made._modules = {**module._modules, path[0]: _with_part(module.get_submodule(path[0]), path[1:], part)}
    return made
