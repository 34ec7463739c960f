"""Studies on a Ray cluster of several nodes that loses workers and nodes."""

import os
import signal
import threading
from pathlib import Path

from suffice.study import Study
from tests.study.clusters import cluster
from tests.study.processes import contents, done, unfinished, wait_for


def at_work(out, after: int) -> int:
    """The process that began the last shard, once so many are done; shards are short, so it may be between two."""
    found: list[int] = []

    def look() -> bool:
        events = [*Study.open(out).store.events()] if done(out) >= after else []
        begun = [event["process"] for event in reversed(events) if event["event"] == "began"]
        found.extend(process for process in begun if Path(f"/proc/{process}").exists())
        return bool(found)

    assert wait_for(look)
    return found[0]


def node_of(made, process: int):
    """The node of a cluster that a worker belongs to."""
    parent = int(Path(f"/proc/{process}/stat").read_text().split()[3])
    return next(node for node in made.worker_nodes if node.all_processes["raylet"][0].process.pid == parent)


def test_a_worker_and_then_a_node_are_lost(tmp_path, whole):
    file, expected = whole
    out = tmp_path / "run"
    with cluster(nodes=2) as made:
        lost = []

        def lose() -> None:
            lost.append(at_work(out, after=3))
            os.kill(lost[0], signal.SIGKILL)
            made.remove_node(node_of(made, at_work(out, after=8)), allow_graceful=False)
            lost.append(done(out))

        thread = threading.Thread(target=lose)
        thread.start()
        Study.open(file).run(out, engine="ray", cpus=1)
        thread.join()
    assert len(lost) == 2
    assert lost[1] < 24  # there was something left to do
    assert contents(out) == expected
    events = [event for event in Study.open(out).store.events() if event["event"] == "finished"]
    assert len(events) == len({event["shard"] for event in events}) >= 22
    assert not unfinished(out)
