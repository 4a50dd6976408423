"""Rondo's backend for torch.distributed: importing it makes init_process_group("rondo") work, for tensors on
the processor and on GPUs.

docs/guide/pytorch.md tells what is supported.
"""
import atexit
import contextlib
import datetime
import sys

import torch
import torch.distributed as dist

from rondo_torch import _C

__all__ = ["key", "register_keys", "statistics"]


def _create(options, backend_options=None):
    timeout = options.timeout
    if backend_options is not None and getattr(backend_options, "_timeout", None) is not None:
        timeout = backend_options._timeout
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    return _C.create_backend(options.store, options.group_rank, options.group_size, timeout, options.group_id, ranks)


def _backend_of(group):
    group = dist.distributed_c10d._get_default_group() if group is None else group
    for device in ("cpu", "cuda"):
        try:
            backend = group._get_backend(torch.device(device))
        except RuntimeError:  # none for this device
            continue
        backend = getattr(backend, "wrapped_pg", backend)
        if backend.name() == "rondo":
            return backend
    raise ValueError(f"the group {group.group_name} has no backend rondo")


def register_keys(keys, group=None):
    """Makes keys (texts that the group does not have yet) for key(). All ranks of the group call it with the same keys in the
    same order, as any collective."""
    _C.register_keys(_backend_of(group), list(keys))


def statistics(group=None):
    """What the group's runtimes have done, {"cpu": {name: number}, "cuda": ...}: the fields of rondo_stats_t. "cuda" is there once the
    group has had a collective of GPU tensors."""
    return _C.statistics(_backend_of(group))


@contextlib.contextmanager
def key(name):
    """Collectives that the thread starts inside, on groups that have the key, match those of the same key by their order, and
    no others: keys may come in different orders on different ranks."""
    before = _C.set_key(name)
    try:
        yield
    finally:
        _C.set_key(before)


def _close_all():
    """Before the interpreter's end: the other ranks may still need this one for what they have started with it. After an
    exception they are not waited for."""
    failed = hasattr(sys, "last_value") or hasattr(sys, "last_exc")
    _C.close_all(datetime.timedelta(seconds=0 if failed else 30), datetime.timedelta(seconds=10))


dist.Backend.register_backend("rondo", _create, extended_api=True, devices=["cpu", "cuda"])
atexit.register(_close_all)
