"""What makes an image the same image, and the random seed that follows from it."""

from __future__ import annotations

import hashlib


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
