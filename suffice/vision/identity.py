"""What makes an image the same image, weights the same weights, and the random seed that follows from an image."""

from __future__ import annotations

import hashlib
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn


def content_hash(*parts: bytes | str) -> str:
    """Hash of some content, 32 hexadecimal digits (blake2b, 16 bytes), the same on every machine.

    Text counts as its UTF-8 bytes. Where a part ends matters: ``("ab", "c")`` and ``("a", "bc")`` differ.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def image_seed(seed: int, image_id: str) -> int:
    """Seed for everything random about one image, from 0 to 2⁶³ - 1 as every generator of torch and numpy takes it.

    It depends on the user's seed and on the image's identity (``Picture.id``) alone, so batching, order and sharding
    never change a result.
    """
    return int(content_hash(str(int(seed)), image_id)[:16], 16) >> 1


# Hashes of weights, each with what they looked like then.
_hashes: WeakKeyDictionary[nn.Module, tuple[Any, str]] = WeakKeyDictionary()
_SEEN = 16  # numbers of each tensor that tell whether it has changed


def weights_hash(module: nn.Module) -> str:
    """Hash of all weights of a module, buffers included: names, types, shapes and numbers, on whatever device.

    Example:
        >>> import torch
        >>> zeros = nn.Linear(2, 1), nn.Linear(2, 1)
        >>> for part in zeros:
        ...     _ = part.requires_grad_(False).weight.zero_(), part.bias.zero_()
        >>> weights_hash(zeros[0]) == weights_hash(zeros[1])
        True
        >>> _ = zeros[0].bias.fill_(1)
        >>> weights_hash(zeros[0]) == weights_hash(zeros[1])
        False
    """
    state = sorted(module.state_dict().items())
    looks = _looks(state)
    before = _hashes.get(module)
    if before is None or before[0] != looks:
        # A hash of hashes, so that only one tensor at a time lies in memory.
        before = _hashes[module] = looks, content_hash(*(_tensor_hash(name, value) for name, value in state))
    return before[1]


def _looks(state: list[tuple[str, Any]]) -> list[Any]:
    """What changes when weights do, and costs little: where each tensor lies, its version, and some of its numbers.

    The version alone would not do: it does not count changes through ``.data``.
    """
    facts: list[Any] = []
    some: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for name, value in state:
        if not isinstance(value, Tensor):
            facts.append((name, repr(value)))
            continue
        version = None if value.is_inference() else value._version
        facts.append((name, value.data_ptr(), version, tuple(value.shape), tuple(value.stride()), value.dtype))
        lies_otherwise = value.dim() == 4 and value.is_contiguous(memory_format=torch.channels_last)
        flat = (value.permute(0, 2, 3, 1) if lies_otherwise else value).detach().flatten()  # no copy, as a rule
        some.setdefault((value.device, value.dtype), []).append(flat[:: max(1, flat.numel() // _SEEN)])
    seen = [torch.cat(parts).contiguous().view(torch.uint8).cpu().numpy().tobytes() for parts in some.values()]
    return [facts, seen]


def _tensor_hash(name: str, value: Any) -> str:
    if not isinstance(value, Tensor):  # a module may keep other things in its state
        return content_hash(name, repr(value))
    numbers = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()  # numpy has no bfloat16
    return content_hash(name, str(value.dtype), str(tuple(value.shape)), numbers.tobytes())
