"""Show a transformer only some of its patch tokens, by leaving the others out for real.

After patches and positions are embedded, the tokens of a plain vision transformer are a set: its blocks take any
number of them. Half the tokens cost less than half the work, and unlike hidden pixels they leave no trace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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
    runner's precision but not compiled, except that its first block is given the tokens kept instead of all; class,
    distillation and register tokens always stay. Afterwards it is as before.

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
    anatomy, module = runner.net.anatomy, runner.module
    swap = _Swap()
    handle = module.get_submodule(anatomy.blocks[0]).register_forward_pre_hook(swap, with_kwargs=True)
    try:
        with torch.no_grad(), runner.net.evaluating():

            def embedded(rows: slice) -> Tensor:
                runner.logits(inputs[rows])
                assert swap.seen is not None
                return swap.seen

            tokens = torch.cat(list(runner.run(len(inputs), embedded)))
            # What comes before the first block need not run again: one image stands for all.
            stand_in = inputs[:1].to(runner.dtype)
            prefix = torch.arange(anatomy.prefix_tokens, device=tokens.device)

            def ask(images: Tensor, kept: Tensor) -> Tensor:
                chosen = torch.cat([prefix.expand(len(kept), -1), kept + len(prefix)], dim=1)
                swap.given = tokens[images[:, None], chosen]
                runner.counters.count(len(images))
                try:
                    logits = class_scores(module(stand_in)).float()
                finally:
                    swap.given = None
                if len(logits) != len(images):
                    raise AnatomyError(
                        f"{runner.net.name} was given {len(images)} sets of tokens and put out {len(logits)} rows "
                        "of scores, so something besides its blocks looks at the images; its tokens cannot be left out"
                    )
                return logits

            yield ask
    finally:
        handle.remove()


class _Swap:
    """A hook before the first block: keeps the tokens that come, or puts others in their place."""

    def __init__(self) -> None:
        self.seen: Tensor | None = None
        self.given: Tensor | None = None

    def __call__(self, block: nn.Module, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not inputs or not isinstance(inputs[0], Tensor):
            raise AnatomyError(f"the first block, a {type(block).__name__}, is not given its tokens as first argument")
        if self.given is None:
            self.seen = inputs[0].detach()
            return None
        return (self.given, *inputs[1:]), kwargs
