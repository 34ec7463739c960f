"""The engine that leaves the work to Ray: several GPUs of one machine, or a cluster.

Each task does the shards of one model and some blocks of images, in an order in which they can be done, and writes
them to the store as the engine ``local`` does. What a lost worker or node had finished stays; Ray does the rest of its
task elsewhere.
"""

from __future__ import annotations

import _thread
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any
from uuid import uuid4

import torch

from suffice.errors import MissingExtra, StudyError, SufficeWarning
from suffice.host_memory import keep_freed_memory
from suffice.progress import stage
from suffice.study.local import PATIENCE, Worker, announce_all
from suffice.study.plan import PLAN, Plan, Shard
from suffice.study.shard import write_failed
from suffice.study.store import Store

RETRIES = 3  # of a task whose worker or node was lost
TASKS = 4  # for each place where one can run, at least, so that all of them end at about the same time
ENDING = 10.0  # seconds that workers have to stop when a study is interrupted
LOOK = 0.5  # seconds between two looks of a worker at whether it was


@dataclass(frozen=True)
class Resources:
    """What a task takes.

    Attributes:
        gpus: GPUs; less than 1 is a share of one.
        cpus: CPUs; without GPUs, also the threads that a model is run with.
    """

    gpus: float
    cpus: float

    @property
    def device(self) -> str:
        """On what kind of device the model is."""
        return "cuda" if self.gpus else "cpu"

    @classmethod
    def of(cls, ray: Any, device: str | None, gpus: float | None, cpus: float | None) -> Resources:
        """What was asked for; else a GPU where there are some, or as many CPUs as this process has threads."""
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        most = {kind: max((node.get(kind, 0) for node in nodes), default=0) for kind in ("GPU", "CPU")}
        if gpus is None:
            gpus = 0 if device == "cpu" else min(1, most["GPU"])
        if device == "cuda" and not gpus:
            raise StudyError("device='cuda', but the Ray cluster has no GPU, or gpus=0.")
        if cpus is None:
            cpus = 1 if gpus else max(1, min(torch.get_num_threads(), most["CPU"]))
        if not any(node.get("GPU", 0) >= gpus and node.get("CPU", 0) >= cpus for node in nodes):
            said = f"No node of the Ray cluster has {gpus:g} GPUs and {cpus:g} CPUs; the study waits until one joins."
            warnings.warn(SufficeWarning(said), stacklevel=2)
        return cls(gpus, cpus)

    def places(self, ray: Any) -> int:
        """How many tasks can run at the same time."""
        there = ray.cluster_resources()
        return max(1, int(there.get("GPU", 0) // self.gpus if self.gpus else there.get("CPU", 0) // self.cpus))


def check_for_ray(store: Store, device: str | None, address: str | None, gpus: float | None) -> None:
    """Say what cannot be, before anything is done."""
    if not find_ray().is_initialized():
        _check_address(address)
    if store.of_this_process:
        raise StudyError(f"{store} is in the memory of this process, which workers of Ray do not see.")
    if device not in (None, "cpu", "cuda"):
        raise StudyError(f"device={device!r}, but Ray gives out devices: write device='cpu' or device='cuda'.")
    if device == "cpu" and gpus:
        raise StudyError(f"device='cpu', but gpus={gpus}.")


def run_on_ray(
    plan: Plan,
    store: Store,
    *,
    only: Sequence[str] = (),
    device: str | None = None,
    address: str | None = None,
    gpus: float | None = None,
    cpus: float | None = None,
) -> int:
    """Do all shards that are not done, as tasks of Ray; returns how many failed.

    Args:
        plan: What has to be done.
        store: Where results go: a place that all workers see.
        only: Just these measurements.
        device: ``"cpu"`` or ``"cuda"``; default: what there is.
        address: Of the cluster; default: the one that this process, or this machine, belongs to, or a new one here.
        gpus: GPUs that a task takes; default: 1 if there are some.
        cpus: CPUs that a task takes; default: 1 beside a GPU, else as many as this process has threads.
    """
    check_for_ray(store, device, address, gpus)
    _ = plan.images  # others than those that the study began with are said before anything is done
    todo = [shard for shard in plan.shards(only) if not store.exists(shard.table)]
    announce_all(plan, todo)
    if not todo:
        return 0
    ray = find_ray()
    with _connected(ray, address):
        resources = Resources.of(ray, device, gpus, cpus)
        return _Tasks(ray, plan, store, resources).do_all(todo)


class _Tasks:
    """Gives out shards, and takes back what could not be done."""

    def __init__(self, ray: Any, plan: Plan, store: Store, resources: Resources) -> None:
        self.ray, self.plan, self.store = ray, plan, store
        plan.loaded.clear()  # workers have models of their own
        # Workers may have another current folder. The copy leaves behind what this process has opened.
        sent = replace(plan, asked=replace(plan.asked, base=plan.asked.base.resolve()))
        _ = sent.measurements  # of kinds that only this process knows, too
        place, study = str(store.local or store.place), uuid4().hex
        self._stopped = stop_file(study)
        self._same = (ray.put(sent), place, study, resources)
        self._task = ray.remote(do_here).options(
            num_gpus=resources.gpus, num_cpus=resources.cpus, max_retries=RETRIES, retry_exceptions=False
        )
        tasks = TASKS * resources.places(ray)
        self._blocks = max(1, plan.blocks * len(plan.models) // tasks)
        self._running: dict[Any, list[Shard]] = {}

    def do_all(self, todo: list[Shard]) -> int:
        """Do shards; returns how many failed."""
        failed = 0
        try:
            while todo or self._running:
                todo = self._submit(todo)
                ended, _ = self.ray.wait([*self._running])
                for task in ended:
                    back, wrong = self._outcome(task)
                    todo, failed = todo + back, failed + wrong
        finally:
            self._stop()
        return failed

    def _submit(self, todo: list[Shard]) -> list[Shard]:
        """Give out the shards that can be done; returns the others."""
        pending = {*todo, *(shard for shards in self._running.values() for shard in shards)}
        for shards in batches(self.plan, todo, pending, self._blocks):
            self._running[self._task.remote(*self._same, shards)] = shards
            todo = [shard for shard in todo if shard not in shards]
        return todo

    def _outcome(self, task: Any) -> tuple[list[Shard], int]:
        """The shards of a task that are still to be done, and how many failed."""
        shards = self._running.pop(task)
        try:
            back, failed = self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:  # an error that concerns all of the study
            raise (error.cause or error) from error
        except self.ray.exceptions.RayError as error:  # the worker was lost too often: by what it did first, we think
            back = [shard for shard in shards if not self.store.exists(shard.table)]
            failed = min(1, len(back))
            for shard in back[:1]:
                why = f"Workers of Ray were lost {RETRIES + 1} times: {type(error).__name__}: {error}"
                write_failed(self.plan, self.store, shard, why)
            back = back[1:]
        else:
            if back:
                time.sleep(PATIENCE)  # another process works on them
        for shard in shards:
            if shard not in back:
                with stage(f"{shard.measurement} of {shard.model}", len(self.plan.rows(shard))):
                    pass  # it was done elsewhere
        return back, failed

    def _stop(self) -> None:
        """Let workers stop, and wait until they have; tasks that have not begun by then return at once when they do.

        Not by ``ray.cancel``: where a task is just being sent to a worker, it ends this process (Ray 2.60: "Tried to
        complete task that was not pending").
        """
        if not self._running:
            return
        self.store.write(self._stopped, b"")
        _, under_way = self.ray.wait([*self._running], num_returns=len(self._running), timeout=ENDING)
        if not under_way:
            self.store.remove(self._stopped)


def batches(plan: Plan, todo: Sequence[Shard], pending: set[Shard], blocks: int) -> list[list[Shard]]:
    """Shards that can be done now, those of a model and some blocks together, each after those that it reads.

    Args:
        plan: What has to be done.
        todo: Shards to be given out.
        pending: Those, and the ones that are under way.
        blocks: So many blocks of images together.
    """
    together: dict[tuple[str, int], list[Shard]] = {}
    for shard in todo:
        batch = together.setdefault((shard.model, shard.number // blocks), [])
        if all(read in batch or read not in pending for read in plan.inputs(shard)):
            batch.append(shard)
    return [batch for batch in together.values() if batch]


_kept: tuple[str, Worker] | None = None  # of the study that this process, a worker of Ray, did last


def do_here(plan: Plan, place: str, study: str, resources: Resources, shards: list[Shard]) -> tuple[list[Shard], int]:
    """In a worker: do shards of a model; returns those that another process works on, and how many failed."""
    global _kept
    if not resources.gpus:
        torch.set_num_threads(max(1, int(resources.cpus)))  # results on CPUs depend on it in the last bits
        keep_freed_memory()
    store = Store(place)
    if not store.exists(PLAN):
        raise StudyError(
            f"Workers of Ray on {socket.gethostname()} do not see the study in {place}. Take a folder that all nodes "
            "share, or an address such as s3://…."
        )
    if _kept is None or _kept[0] != study:
        _kept = None
        _kept = study, Worker(plan, store, resources.device)
    worker = _kept[1]
    busy: list[Shard] = []
    failed = 0
    with _stopping(store, stop_file(study)) as stopped, closing(worker):
        for shard, then in zip_longest(shards, shards[1:]):
            if stopped():
                break
            waits = any(read in busy for read in plan.inputs(shard))
            outcome = None if waits else worker.do(shard, then)
            if outcome is None:
                busy.append(shard)
            else:
                failed += outcome
    return busy, failed


def stop_file(study: str) -> str:
    """The file that tells workers that a run of a study was interrupted."""
    return f"locks/stopped-{study}"


@contextmanager
def _stopping(store: Store, file: str) -> Iterator[Callable[[], bool]]:
    """Ends what is inside soon after a file appears, as Ctrl-C would; yields a function that says whether it has."""
    over = threading.Event()
    seen = store.exists(file)

    def watch() -> None:
        nonlocal seen
        while not (seen or over.wait(LOOK)):
            if store.exists(file):
                seen = True
                _thread.interrupt_main()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        try:
            yield lambda: seen
        finally:
            over.set()
            watcher.join()  # an interrupt on its way arrives here at the latest
    except KeyboardInterrupt:
        if not seen:
            raise


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connected to a cluster: as this process is already, or for as long as one is inside."""
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    except (ConnectionError, ValueError) as error:
        raise StudyError(f"There is no Ray cluster at {address}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Say where nobody answers; Ray itself would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if not colon:
        return  # "auto", "local", or none
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise StudyError(f"There is no Ray cluster at {address}: {error}.") from error


def find_ray() -> Any:
    """The module of Ray."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("engine='ray' needs Ray: pip install 'suffice[ray]'.") from error
    return ray
