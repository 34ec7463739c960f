"""Agglomerative clustering against SciPy, k-means against scikit-learn, both alike in any batch."""

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans

from suffice.attribution.channels import agglomerate, first_samples, k_means
from suffice.errors import OptionError


def places(images, count, features, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centers = torch.rand(images, 9, features, generator=generator, dtype=torch.float64) * 3
    chosen = torch.randint(9, (images, count), generator=generator)
    near = centers.gather(1, chosen[:, :, None].expand(-1, -1, features))
    return near + torch.rand(images, count, features, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("method", ["complete", "average", "single"])
def test_agglomerative_clusters_are_those_of_scipy(method):
    apart = torch.cdist(*[places(3, 90, 4)] * 2)
    apart = (apart + apart.mT) / 2
    numbers = set()
    for threshold in (0.2, 0.5, 0.8, 1.2, 2.0):
        found = agglomerate(apart, threshold, method)
        for own, table in zip(found, apart, strict=True):
            tree = linkage(squareform(table.numpy(), checks=False), method)
            theirs = fcluster(tree, threshold, "distance")
            first = np.array([np.flatnonzero(theirs == c)[0] for c in theirs])
            np.testing.assert_array_equal(own.numpy(), first)
            numbers.add(len(set(first)))
    assert len(numbers) > 4


def test_items_at_an_infinite_distance_stay_alone_and_equal_ones_come_together():
    apart = torch.zeros(1, 6, 6)
    apart[:, 3] = apart[:, :, 3] = torch.inf
    assert agglomerate(apart, 0.1).tolist() == [[0, 0, 0, 3, 0, 0]]
    assert agglomerate(torch.full((1, 3, 3), 2.0), 1.0).tolist() == [[0, 1, 2]]
    assert agglomerate(torch.zeros(2, 1, 1), 1.0).tolist() == [[0], [0]]


def test_k_means_is_that_of_scikit_learn_from_the_same_start():
    samples, seeds = places(3, 200, 5), torch.tensor([4, 5, 6])
    centroids, sizes = k_means(samples, 12, seeds, iterations=300, tolerance=0.0)
    start = first_samples(seeds, 200, 12)
    for b in range(3):
        theirs = KMeans(12, init=samples[b][start[b]].numpy(), n_init=1, max_iter=300, tol=0).fit(samples[b].numpy())
        np.testing.assert_allclose(centroids[b].numpy(), theirs.cluster_centers_, atol=1e-9)
        np.testing.assert_array_equal(sizes[b].numpy(), np.bincount(theirs.labels_, minlength=12))


def test_an_images_clusters_do_not_depend_on_its_batch(monkeypatch):
    samples, seeds = places(4, 60, 5), torch.tensor([4, 5, 6, 7])
    together = k_means(samples, 10, seeds)[0]
    assert torch.equal(k_means(samples[2:3], 10, seeds[2:3])[0], together[2:3])
    monkeypatch.setattr("suffice.attribution.channels._AT_ONCE", 600)  # one image at a time
    assert torch.equal(k_means(samples, 10, seeds)[0], together)
    assert not torch.equal(k_means(samples, 10, seeds + 1)[0], together)


def test_k_means_begins_at_distinct_samples_and_stops_in_time():
    start = first_samples(torch.tensor([1, 2]), 30, 30)
    assert start.sort(dim=1).values.tolist() == [list(range(30))] * 2
    samples = places(1, 100, 3)
    once = k_means(samples, 8, torch.tensor([0]), iterations=1)[0]
    start = samples[0, first_samples(torch.tensor([0]), 100, 8)[0]]
    nearest = torch.cdist(samples[0], start).argmin(dim=1)
    by_hand = torch.stack([samples[0, nearest == c].mean(dim=0) for c in range(8)])
    torch.testing.assert_close(once[0], by_hand)
    lax = k_means(samples, 8, torch.tensor([0]), iterations=50, tolerance=1e9)[0]
    assert torch.equal(lax, once)


def test_a_cluster_without_samples_stays_where_it_was_or_goes_to_zero():
    samples = torch.zeros(1, 4, 2)  # all the same, so that all but one cluster are empty
    centroids, sizes = k_means(samples + 3, 3, torch.tensor([0]))
    assert torch.equal(centroids, torch.full((1, 3, 2), 3.0))
    assert sizes.sum() == 4
    assert (sizes > 0).sum() == 1
    centroids, sizes = k_means(samples + 3, 3, torch.tensor([0]), emptied="zero")
    torch.testing.assert_close(centroids, 3 * (sizes > 0)[:, :, None].expand(-1, -1, 2).float())
    assert sizes.sort().values.tolist() == [[0, 0, 4]]
    with pytest.raises(OptionError, match="5 clusters of 4"):
        k_means(samples, 5, torch.tensor([0]))
