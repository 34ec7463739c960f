"""What the labels of a data set mean: names of classes, as an index means another class to another model.

A number is taken for the index of a class only where nothing between the data set that has the names and the user
can have changed it; otherwise it is an error that says why, as another class would go unnoticed.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from torch.utils.data import Subset

from suffice.errors import ImageError

_MEND = "Let it give the names of classes, or pass labels= to open_images (one per image, or None for none)."


class ClassNames:
    """The names of the classes of a data set, or of those that it consists of.

    Args:
        dataset: A map-style data set: as torchvision and timm have them, a part of one (``Subset``), several of them
            (``ConcatDataset``), or something around one.

    Example:
        >>> class Animals(list):
        ...     classes = ["cat", "dog"]
        >>> ClassNames(Animals([("a.png", 1)])).of(1, 0, "Animals[0]")
        'dog'
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.kind = type(dataset).__name__
        self.names = _names(dataset)
        self.parts = [] if self.names else [ClassNames(part) for part in _parts(dataset)]

    @cached_property
    def numbers(self) -> set[int]:
        """The numbers that have a name, in this data set or in one inside it."""
        return set(self.names or ()).union(*(part.numbers for part in self.parts))

    def of(self, label: Any, index: int, where: str) -> Any:
        """The name of the class of an item.

        Args:
            label: The label of the item; one that is no integer is given back, and the -1 of unlabeled items is None.
            index: The position of the item.
            where: What errors call the item.

        Raises:
            ImageError: Nobody knows which class the number means.
        """
        number = _integer(label)
        if number is None or not self.numbers:
            return label
        if number == -1:
            return None
        if self.names is not None:
            return self._own(number, index, where)
        if self._changed:
            raise ImageError(f"{where} has the label {number}, but {self._changed} {_MEND}")
        if hasattr(self.dataset, "cumulative_sizes"):
            which = bisect_right(self.dataset.cumulative_sizes, index)
            before = self.dataset.cumulative_sizes[which - 1] if which else 0
            return self.parts[which].of(number, index - before, where)
        return self._inside(number, index, where)

    def _own(self, number: int, index: int, where: str) -> str:
        names = self.names or {}
        if number in names and not self._changed and self._stored(number, index):
            return names[number]
        reason = self._changed or (
            f"{self.kind} names the classes {min(names)} to {max(names)}."
            if number not in names
            else f"{self.kind} may have made it from another one."
        )
        raise ImageError(f"{where} has the label {number}, but {reason} {_MEND}")

    @cached_property
    def _changed(self) -> str:
        """Why the number of an item is no index of a class; empty where the data set changes no label."""
        transform = getattr(self.dataset, "target_transform", None)
        if transform is None:
            return ""
        try:
            same = all(_integer(transform(number)) == number for number in self.numbers)
        except Exception:  # whatever the user's function raises for a class that no item has
            same = False
        return "" if same else f"the target_transform of {self.kind} made it from another one."

    def _stored(self, number: int, index: int) -> bool:
        """Whether the number is what is stored for the item, as far as that can be known."""
        raw = self.raw(index)
        if raw is None:  # transforms of image and label at once cannot be asked about labels alone
            transforms = getattr(self.dataset, "transforms", None)
            return transforms is None or hasattr(transforms, "target_transform")
        return raw == number

    def _inside(self, number: int, index: int, where: str) -> Any:
        """The name that the data set inside gives, where it has the same label at the same place."""
        (inner,) = self.parts
        place = index if len(self.dataset) == len(inner.dataset) else None
        if hasattr(self.dataset, "indices"):
            place = int(self.dataset.indices[index])
        if place is not None and (type(self.dataset) is Subset or inner.delivered(place) == number):
            return inner.of(number, place, where)
        why = f"{self.kind} may have changed what {inner.kind} has, so its number may mean another class."
        raise ImageError(f"{where} has the label {number}, but {why} {_MEND}")

    def raw(self, index: int) -> int | None:
        """The label of an item before any transform; None where it is not to be had."""
        for name in ("targets", "_labels", "labels"):
            labels: Any = getattr(self.dataset, name, None)
            if hasattr(labels, "__getitem__") and len(labels) == len(self.dataset):
                return _integer(labels[index])
        samples = getattr(self.dataset, "samples", None)  # of readers of timm, whose items are open files
        if isinstance(samples, list) and len(samples) == len(self.dataset) and len(samples[index]) == 2:
            return _integer(samples[index][1])
        return None

    def delivered(self, index: int) -> int | None:
        """The label of an item as the data set gives it."""
        changes = any(getattr(self.dataset, name, None) is not None for name in ("target_transform", "transforms"))
        if not changes and (label := self.raw(index)) is not None:
            return label
        item = self.dataset[index]
        if isinstance(item, Mapping):  # of Hugging Face
            item = (None, item.get(_label_column(self.dataset)))
        return _integer(item[1]) if isinstance(item, (tuple, list)) and len(item) == 2 else None


def _names(dataset: Any) -> dict[int, str] | None:
    """Names of the classes of a data set by index, from whichever list or table it has.

    Of several names it is the first, and WordNet ids, where there are any, are unique.
    """
    lists = (getattr(dataset, name, None) for name in ("wnids", "classes", "categories"))
    names = next((names for names in lists if names), None)
    if (column := _label_column(dataset)) is not None:
        names = getattr(dataset.features[column], "names", None)
    if isinstance(names, (list, tuple)):
        return {i: str(name[0] if isinstance(name, (list, tuple)) else name) for i, name in enumerate(names)} or None
    table = getattr(dataset, "class_to_idx", None) or getattr(dataset, "class_name_to_idx", None)
    if not isinstance(table, Mapping) or not all(isinstance(name, str) for name in table):
        return None
    # Where several names share an index, nobody knows which of them an item has.
    shared = Counter(table.values())
    return {number: name for name, number in table.items() if shared[number] == 1} or None


def _label_column(dataset: Any) -> str | None:
    """The column of classes, in a data set of Hugging Face."""
    features = getattr(dataset, "features", None)
    if not isinstance(features, Mapping):
        return None
    return next((name for name, feature in features.items() if type(feature).__name__ == "ClassLabel"), None)


def _parts(dataset: Any) -> list[Any]:
    """The data sets that one consists of, or the one inside it: torch calls it dataset, timm reader."""
    if hasattr(dataset, "cumulative_sizes"):
        return list(dataset.datasets)
    for name in ("dataset", "reader"):
        inner = getattr(dataset, name, None)
        if hasattr(inner, "__getitem__") and hasattr(inner, "__len__") and not isinstance(inner, str):
            return [inner]
    return []


def _integer(label: Any) -> int | None:
    try:
        return operator.index(label)
    except TypeError:
        return None
