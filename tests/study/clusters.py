"""Small Ray clusters for tests: as little as they can do with, and nothing reported to anyone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

for _name, _value in {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}.items():
    os.environ.setdefault(_name, _value)
ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'suffice[ray]'")
MEMORY = 80 * 2**20  # the least that Ray allows for objects


@contextmanager
def cluster(nodes: int) -> Iterator[Any]:
    """So many node processes with one CPU each, beside one that does no work; this process is connected to them."""
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
    )
    try:
        for _ in range(nodes):
            made.add_node(num_cpus=1, object_store_memory=MEMORY)
        ray.init(address=made.address, log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
