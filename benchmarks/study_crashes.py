"""Kill a study again and again, go on each time, and hold the end against a run that nobody interrupted.

python benchmarks/study_crashes.py --images 200 --kills 30
python benchmarks/study_crashes.py --images 200 --engine ray  # a cluster on this machine loses a worker and a node
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch

from suffice.study import Study
from suffice.study.shard import read_maps

MODELS = "zoo/vgg,zoo/resnet,zoo/convnext-3-bn,zoo/deit,zoo/swin,zoo/levit"
MEASURE: dict[str, dict[str, Any]] = {
    "evidence": {"kind": "evidence", "grid": 3, "max_size": 3, "max_mses": 3, "pictures": False},
    "grad-cam": {"kind": "attribution", "method": "grad-cam"},
    "gradient": {"kind": "attribution", "method": "gradient"},
    "grad-cam-scores": {"kind": "metrics", "maps": "grad-cam", "metrics": ["insertion", "deletion"], "steps": 8},
    "gradient-scores": {"kind": "metrics", "maps": "gradient", "metrics": ["insertion", "deletion"], "steps": 8},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--nodes", type=int, default=2, help="with --engine ray")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("study-crashes"))
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # also of the processes that are started here
    torch.set_num_threads(1)

    options.folder.mkdir(parents=True, exist_ok=True)
    file, whole, out = (options.folder / name for name in ("study.json", "whole", options.engine))
    images = f"scenes:test[:{options.images}]"
    asked = {"name": "crashes", "images": images, "models": options.models.split(","), "measure": MEASURE}
    file.write_text(json.dumps(asked, indent=1))
    started = time.monotonic()
    subprocess.run(command(file, whole), check=True)
    print(f"{shards(whole)} shards without interruption: {time.monotonic() - started:.0f} s", flush=True)

    shutil.rmtree(out, ignore_errors=True)
    chance = random.Random(options.seed)
    kill = kill_processes if options.engine == "local" else kill_on_ray
    print(json.dumps(kill(file, out, options, shards(whole), chance)), flush=True)
    expected, found = contents(whole), contents(out)
    differing = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
    said = [event["shard"] for event in events(out) if event["event"] == "finished"]
    result = {
        "equal": not differing,
        "differing": differing,
        "twice": len(said) - len(set(said)),
        "unfinished files": len([*out.rglob("*.unfinished")]),
    }
    print(json.dumps(result))
    sys.exit(bool(differing or result["twice"] or result["unfinished files"]))


def kill_processes(file: Path, out: Path, options: Any, count: int, chance: random.Random) -> dict[str, Any]:
    """Kill the command at moments that are spread over all of the work, and where two are near, soon after a start."""
    moments = []
    for goal in sorted(chance.randrange(count - 8) for _ in range(options.kills)):
        process = subprocess.Popen(command(file, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, 10) if shards(out) >= goal else 0)
        while process.poll() is None and shards(out) < goal:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 1))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        moments.append(shards(out))
        print(f"kill {len(moments)}: {moments[-1]} shards done", flush=True)
    subprocess.run(command(file, out), check=True)
    return {"kills": len(moments), "shards done at each": moments}


def kill_on_ray(file: Path, out: Path, options: Any, count: int, chance: random.Random) -> dict[str, Any]:
    """Kill a worker, and later a node with a worker that is at work."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    import ray
    from ray.cluster_utils import Cluster

    small: dict[str, Any] = {"object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
    for _ in range(options.nodes):
        cluster.add_node(num_cpus=1, **small)
    ray.init(address=cluster.address, log_to_driver=False)
    moments = {}

    def lose() -> None:
        worker = at_work(out, after=round(count * chance.uniform(0.1, 0.4)))
        os.kill(worker, signal.SIGKILL)
        moments["worker"] = shards(out)
        worker = at_work(out, after=round(count * chance.uniform(0.5, 0.8)))
        parent = int(Path(f"/proc/{worker}/stat").read_text().split()[3])
        (node,) = (n for n in cluster.worker_nodes if n.all_processes["raylet"][0].process.pid == parent)
        cluster.remove_node(node, allow_graceful=False)
        moments["node"] = shards(out)

    thread = threading.Thread(target=lose)
    thread.start()
    started = time.monotonic()
    Study.open(file).run(out, engine="ray", device="cpu", cpus=1)
    thread.join()
    ray.shutdown()
    cluster.shutdown()
    return {"shards done when lost": moments, "seconds": round(time.monotonic() - started)}


def command(file: Path, out: Path) -> list[str]:
    code = "from suffice.cli import main; main()"
    return [sys.executable, "-c", code, "study", "run", str(file), "--out", str(out), "--device", "cpu"]


def shards(out: Path) -> int:
    return len([*out.glob("tables/*/*/*.parquet")])


def events(out: Path) -> list[dict[str, Any]]:
    return [*Study.open(out).store.events()] if (out / "plan.json").exists() else []  # type: ignore[union-attr]


def at_work(out: Path, after: int) -> int:
    """A living process that has begun a shard, and not finished it, once so many are done."""
    while True:
        ended = {event["shard"] for event in events(out) if event["event"] != "began"}
        begun = [event["process"] for event in events(out) if event["shard"] not in ended]
        living = [process for process in begun if Path(f"/proc/{process}").exists()]
        if living and shards(out) >= after:
            return int(living[0])
        time.sleep(0.05)


def contents(out: Path) -> dict[str, object]:
    """Every column of every table, and every map."""
    study = Study.open(out)
    assert study.store is not None
    found: dict[str, object] = {name: repr(study.table(name).to_pydict()) for name in study.tables}
    for shard in study.plan.shards():
        if study.store.exists(shard.maps):
            maps = read_maps(study.plan, study.store, shard)
            found[shard.maps] = (maps.maps.numpy().tobytes(), maps.targets.tolist(), maps.settings)
    return found


if __name__ == "__main__":
    main()
