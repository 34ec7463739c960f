"""What the tests of opened images share."""

import torch
from PIL import Image

from suffice.vision.images import open_images


def save(path, color=(10, 20, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 3), color).save(path)
    return path


def decoded(source, **options):
    (picture,) = open_images(source, **options)
    return picture.decode()


class Squares(torch.utils.data.Dataset):
    """(image, label) pairs that note what was fetched."""

    def __init__(self, count=4, make=lambda i: Image.new("RGB", (2, 2), (i, i, i)), labeled=True):
        self.count, self.make, self.labeled, self.fetched = count, make, labeled, []

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        self.fetched.append(i)
        return (self.make(i), i * i) if self.labeled else self.make(i)
