"""Architectures of the zoo, each built once."""

import copy
from functools import cache

from suffice.zoo import architectures

once = cache(architectures.build)


def build(name):
    """A network of one's own, with the weights that it begins with."""
    return copy.deepcopy(once(name))
