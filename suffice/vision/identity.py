"""What makes an image the same image, and the random seed that follows from it."""

from __future__ import annotations

import hashlib


def content_hash(*parts: bytes | str) -> str:
    """Hash of some content; the same parts give the same hash on every machine.

    Text counts as its UTF-8 bytes. Where one part ends and the next begins matters: ``("ab", "c")`` and
    ``("a", "bc")`` differ.

    Args:
        *parts: The content.

    Returns:
        32 hexadecimal digits (blake2b, 16 bytes).

    Example:
        >>> content_hash("ab", "c") == content_hash("ab", b"c")
        True
        >>> content_hash("ab", "c") == content_hash("a", "bc")
        False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def image_seed(seed: int, image_id: str) -> int:
    """Seed for everything random about one image.

    It depends on the user's seed and on the image alone, so batching, order and sharding never change a
    result.

    Args:
        seed: The user's seed, any integer.
        image_id: Identity of the image, as in ``Picture.id``.

    Returns:
        An integer from 0 to 2⁶³ - 1, which every generator of torch and numpy takes.

    Example:
        >>> image_seed(0, "cat") == image_seed(0, "cat")
        True
        >>> image_seed(0, "cat") == image_seed(1, "cat")
        False
    """
    return int(content_hash(str(int(seed)), image_id)[:16], 16) >> 1
