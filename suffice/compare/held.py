"""Images that one model is shown many times: decoded, brought to its size and to its device once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from suffice.vision import Classifier, Images
from suffice.vision.images import Picture

MOST = 1 << 30  # bytes of pixels


def held(net: Classifier, images: Images, most: int = MOST) -> Images:
    """The same images, whose pixels are kept at the model's size and on its device once they are read.

    Each map of another model is a new round over the images. Without this, threads would decode them again in every
    round, and a GPU would wait for them and for their way to it.

    Args:
        net: The model that is shown them, and no other.
        images: Nothing is read of them yet.
        most: Bytes of pixels to keep; what is beyond is read again each time.

    Example:
        >>> import torch
        >>> from suffice.testing import AnyOf
        >>> from suffice.vision import open_images
        >>> kept = held(AnyOf([(5,)], grid=4).classifier(32), open_images(torch.rand(2, 3, 48, 48)))
        >>> kept[0].decode().shape, kept[0].decode() is kept[0].decode()
        (torch.Size([3, 32, 32]), True)
    """
    room = _Room(most)
    return Images(replace(picture, source=_Held(picture, net, room)) for picture in images)


@dataclass
class _Room:
    """Bytes that are left; threads that take some at the same moment may miscount a little, which does no harm."""

    left: int


@dataclass(eq=False)
class _Held:
    """Where the pixels of a picture come from that are perhaps known already."""

    picture: Picture
    net: Classifier
    room: _Room
    pixels: Tensor | None = field(default=None, repr=False)

    def read(self) -> Tensor:
        # A geometry takes a tensor of its own size as it is, so that what is kept goes through it unchanged.
        if self.pixels is not None:
            return self.pixels
        pixels = self.net.geometry(self.picture.decode()).to(self.net.device)
        if pixels.nbytes <= self.room.left:
            self.room.left -= pixels.nbytes
            self.pixels = pixels
        return pixels

    def fingerprint(self) -> str:
        return self.picture.id
