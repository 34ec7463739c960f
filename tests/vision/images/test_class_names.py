"""Labels of data sets are the names of classes, or an error: never the index of another class."""

import pickle

import pytest
import torch
from PIL import Image
from timm.data import ImageDataset
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from suffice.errors import ImageError
from suffice.vision.images import open_images
from tests.vision.images.files import save


@pytest.fixture
def dogs(tmp_path):
    return folder(tmp_path / "dogs", "beagle", "pug")


@pytest.fixture
def fish(tmp_path):
    return folder(tmp_path / "fish", "goldfish", "shark", "tench")


def folder(path, *classes):
    for name in classes:
        save(path / name / "1.png")
    return str(path)


class Around(Dataset):
    """A data set as users write them around others; the label is what a function makes of the label inside."""

    def __init__(self, dataset, change=lambda label: label, count=None):
        self.dataset, self.change, self.count = dataset, change, count or len(dataset)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image, label = self.dataset[index]
        return image, self.change(label)


def test_several_data_sets_each_have_their_own_classes(dogs, fish):
    both = ConcatDataset([ImageFolder(dogs), Subset(ImageFolder(fish), [2, 0])])
    assert open_images(both).labels == ["beagle", "pug", "tench", "goldfish"]
    assert open_images(Subset(both, [3, 1])).labels == ["goldfish", "pug"]
    assert open_images(ConcatDataset([both, ImageFolder(dogs)])).labels[4:] == ["beagle", "pug"]
    assert open_images(Around(both)).labels == open_images(both).labels
    assert pickle.loads(pickle.dumps(open_images(both))).labels == open_images(both).labels
    plain = TensorDataset(torch.rand(2, 3, 4, 4), torch.tensor([281, 5]))
    assert open_images(ConcatDataset([plain, plain])).labels == [281, 5, 281, 5]


def test_data_sets_of_timm(dogs, tmp_path):
    assert open_images(ImageDataset(dogs)).labels == ["beagle", "pug"]
    assert open_images(ConcatDataset([ImageDataset(dogs), ImageFolder(dogs)])).labels == ["beagle", "pug"] * 2
    (tmp_path / "classes.txt").write_text("pug\nbeagle\n")
    assert open_images(ImageDataset(dogs, class_map=str(tmp_path / "classes.txt"))).labels == ["beagle", "pug"]
    with pytest.raises(ImageError, match="the target_transform of ImageDataset made it from another one"):
        _ = open_images(ImageDataset(dogs, target_transform=lambda label: 1 - label)).labels


def test_a_target_transform_makes_other_numbers(dogs):
    swapped = ImageFolder(dogs, target_transform=lambda label: 1 - label)
    for source in (swapped, Subset(swapped, [0]), ConcatDataset([swapped]), Around(swapped)):
        with pytest.raises(ImageError, match=r"the target_transform of ImageFolder made it .*labels="):
            _ = open_images(source).labels
        assert open_images(source, labels=None).labels[0] is None
    assert open_images(swapped)[0].decode().size == (4, 3)  # who asks for no label, needs none
    as_tensor = ImageFolder(dogs, target_transform=torch.tensor)
    assert open_images(as_tensor).labels == ["beagle", "pug"]
    names = ImageFolder(dogs, target_transform=["a hound", "another dog"].__getitem__)
    assert open_images(names).labels == ["a hound", "another dog"]


def test_transforms_of_image_and_label(dogs):
    assert open_images(ImageFolder(dogs, transform=v2.Resize(2))).labels == ["beagle", "pug"]
    whole = ImageFolder(dogs)
    whole.transforms = v2.Compose([v2.RandomHorizontalFlip(), v2.Resize(2)])
    assert open_images(Around(whole)).labels == ["beagle", "pug"]
    for change in (lambda image, label: (image, 1 - label), lambda image, label: (image, label + 7)):

        class Joint(ImageFolder):
            def __getitem__(self, index, change=change):
                return change(*super().__getitem__(index))

        joint = Joint(dogs)
        joint.transforms = change
        with pytest.raises(ImageError, match=r"Joint.*labels="):
            _ = open_images(joint).labels


def test_what_users_write_around_data_sets(dogs):
    inside = ImageFolder(dogs)
    assert open_images(Around(inside)).labels == ["beagle", "pug"]
    assert open_images(Around(Subset(inside, [1, 0]))).labels == ["pug", "beagle"]
    assert open_images(Around(inside, change=lambda label: -1)).labels == [None, None]
    for changed in (Around(inside, change=lambda label: 1 - label), Around(inside, count=1)):
        with pytest.raises(ImageError, match=r"Around\[0\] has .*Around may have changed what ImageFolder has"):
            _ = open_images(changed).labels


def test_numbers_without_a_name(dogs):
    class Shifted(ImageFolder):
        def __getitem__(self, index):
            image, label = super().__getitem__(index)
            return image, label + 1

    with pytest.raises(ImageError, match=r"Shifted\[1\] has the label 2, but Shifted names the classes 0 to 1"):
        _ = open_images(Shifted(dogs))[1].label
    with pytest.raises(ImageError, match=r"Shifted\[0\] .* Shifted may have made it from another one"):
        _ = open_images(Shifted(dogs))[0].label


def test_a_data_set_of_hugging_face_inside_another(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    rows = datasets.Dataset.from_dict(
        {"image": [str(save(tmp_path / f"{i}.png")) for i in range(2)], "label": [1, 0]}, features=features
    )

    class Pairs(Dataset):
        def __init__(self, shift=0):
            self.dataset, self.shift = rows, shift

        def __len__(self):
            return len(self.dataset)

        def __getitem__(self, index):
            row = self.dataset[index]
            assert isinstance(row["image"], Image.Image)
            return row["image"], (row["label"] + self.shift) % 2

    assert open_images(Pairs()).labels == ["dog", "cat"]
    with pytest.raises(ImageError, match="Pairs may have changed what Dataset has"):
        _ = open_images(Pairs(shift=1)).labels
