"""Rondo's backend for torch.distributed: importing it makes init_process_group("rondo") work. CPU tensors.

docs/guide/pytorch.md tells what is supported.
"""
import atexit
import datetime
import sys

import torch
import torch.distributed as dist

from rondo_torch import _C

__all__ = []


def _create(options, backend_options=None):
    timeout = options.timeout
    if backend_options is not None and getattr(backend_options, "_timeout", None) is not None:
        timeout = backend_options._timeout
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    return _C.create_backend(options.store, options.group_rank, options.group_size, timeout, options.group_id, ranks)


def _close_all():
    """Before the interpreter's end: the other ranks may still need this one for what they have started with it. After an
    exception they are not waited for."""
    failed = hasattr(sys, "last_value") or hasattr(sys, "last_exc")
    _C.close_all(datetime.timedelta(seconds=0 if failed else 30), datetime.timedelta(seconds=10))


dist.Backend.register_backend("rondo", _create, extended_api=True, devices=["cpu"])
atexit.register(_close_all)
