"""Rondo for Python: the calls of rondo.h on anything that has the buffer protocol (numpy arrays, array.array, bytearray,
ctypes arrays) or DLPack on the processor.

    import numpy, rondo
    with rondo.Runtime() as runtime:              # rank and size from the launcher, as rondo_init(NULL)
        world = runtime.world
        a = numpy.ones(4, "float32")
        world.allreduce(rondo.IN_PLACE, a)        # blocks
        request = world.iallreduce(rondo.IN_PLACE, a)
        request.wait()
        persistent = world.allreduce_init(rondo.IN_PLACE, a)
        persistent.start()
        persistent.wait()

A method is the function of rondo.h without its rondo_ and without what the buffers tell: count, datatype and communicator. Each
has a blocking, a nonblocking (i...) and a persistent (..._init) form. An error is a rondo.Error with rondo_last_error()'s text.
"""
import ctypes
import ctypes.util
import os

__all__ = ["Runtime", "Communicator", "Request", "Error", "IN_PLACE", "unique_id", "library_path"]

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_NAMES = ["librondo.so.0.2"]


def library_path():
    """The library that is used: RONDO_X_LIBRARY, else the one in this package, that of the tree's build, or the loader's."""
    tree = os.path.join(_FOLDER, "..", "..", "build")
    for path in [os.environ.get("RONDO_X_LIBRARY")] + [os.path.join(f, name) for f in (_FOLDER, tree) for name in _NAMES]:
        if path and os.path.exists(path):
            return path
    return _NAMES[0]


_lib = ctypes.CDLL(library_path())
_lib.rondo_last_error.restype = ctypes.c_char_p
_lib.rondo_strerror.restype = ctypes.c_char_p

_TYPES = {"int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "bfloat16": 7, "float32": 8,
          "float64": 9, "float8e4m3": 10, "float8e5m2": 11, "int16": 12, "uint16": 13, "bool": 14, "complex64": 15,
          "complex128": 16}
_OPS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "avg": 4, "land": 5, "lor": 6, "lxor": 7, "band": 8, "bor": 9, "bxor": 10}
# struct's letters, by the kind and size of the element.
_LETTERS = dict.fromkeys("bhilqn", "int") | dict.fromkeys("BHILQNc", "uint") | dict.fromkeys("efd", "float") | {"?": "bool"}
_DEVICES = {"auto": 0, "host": 1, "cuda": 2}


class Error(RuntimeError):
    """A call that has failed: code is its rondo_result_t."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def _check(code):
    if code != 0:
        text = (_lib.rondo_last_error() or b"").decode(errors="replace")
        raise Error(code, f"{_lib.rondo_strerror(code).decode()}: {text}")


class _InPlace:
    address, count, type, keep, size = ctypes.c_void_p(-1), 0, None, None, 0


class _Nothing:
    address, count, type, keep, size = ctypes.c_void_p(None), 0, None, None, 0


IN_PLACE = _InPlace()


class _Buffer:
    """The address, the number of elements and the type of a buffer, which it keeps alive."""

    def __init__(self, buffer, writable):
        if not hasattr(buffer, "__buffer__") and not isinstance(buffer, (bytes, bytearray, memoryview)) \
                and hasattr(buffer, "__dlpack__") and not _has_buffer(buffer):
            import numpy
            buffer = numpy.from_dlpack(buffer)
        view = memoryview(buffer)
        if not view.c_contiguous:
            raise ValueError("a buffer must be contiguous (C order)")
        if writable and view.readonly:
            raise ValueError("the receive buffer is read-only")
        letter = view.format.lstrip("@=<|") if view.format else "B"
        if letter in ("Zf", "Zd"):
            name = "complex64" if letter == "Zf" else "complex128"
        elif letter in _LETTERS:
            kind = _LETTERS[letter]
            name = kind if kind == "bool" else f"{kind}{8 * view.itemsize}"
        else:
            raise TypeError(f"elements of format {view.format!r} are no type of Rondo's")
        self.type, self.size = _TYPES[name], view.itemsize
        self.count = view.nbytes // view.itemsize
        self.keep = (buffer, view)
        self.address = ctypes.c_void_p(_address(view))


def _has_buffer(thing):
    try:
        memoryview(thing)
    except (TypeError, BufferError):
        return False
    return True


class _PyBuffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p),
                ("internal", ctypes.c_void_p)]


def _address(view):
    """Of a memoryview's first byte, also of one that is read-only. None of an empty one."""
    if view.nbytes == 0:
        return None
    taken = _PyBuffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    get.argtypes, release.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int], [ctypes.POINTER(_PyBuffer)]
    get(view, ctypes.byref(taken), 0)
    address = taken.buf
    release(ctypes.byref(taken))
    return address


def _sizes(values):
    return (ctypes.c_size_t * len(values))(*values)


class _Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 128)]


class _Config(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("size", ctypes.c_int), ("unique_id", ctypes.POINTER(_Id)), ("device", ctypes.c_int),
                ("device_index", ctypes.c_int), ("transports", ctypes.c_char_p), ("host_id", ctypes.c_char_p),
                ("timeout", ctypes.c_double), ("check", ctypes.c_int), ("preempt", ctypes.c_int), ("blocks", ctypes.c_int),
                ("stream_blocks", ctypes.c_int), ("sm", ctypes.c_int), ("order", ctypes.c_char_p), ("spin", ctypes.c_char_p),
                ("spin_initial", ctypes.c_int64), ("spin_decay", ctypes.c_int), ("spin_boost", ctypes.c_int),
                ("spin_cap", ctypes.c_int64), ("quit_idle_us", ctypes.c_int64), ("quit_stuck_us", ctypes.c_int64),
                ("residency_us", ctypes.c_int64), ("memory_budget", ctypes.c_int64), ("connect_timeout", ctypes.c_double),
                ("unique_ids", ctypes.c_int)]


def _config(rank, size, device, timeout=-1.0, check=-1, connect_timeout=-1.0):
    return _Config(rank, size, None, _DEVICES[device], -1, None, None, timeout, check, -1, -1, -1, -1, None, None, -1, -1, -1, -1, -1,
                   -1, -1, -1, connect_timeout, 1)


def _id(unique_id):
    made = _Id()
    ctypes.memmove(ctypes.byref(made), unique_id, ctypes.sizeof(made))
    return made


def unique_id():
    """Makes a meeting place in this process: bytes for Runtime(unique_id=...) on all ranks."""
    made = _Id()
    _check(_lib.rondo_get_unique_id(ctypes.byref(made)))
    return bytes(made.bytes)


class Request:
    """An operation that was started, or a persistent one. It keeps its buffers alive."""

    def __init__(self, handle, keep, persistent):
        self._handle, self._keep, self._persistent = handle, keep, persistent

    def start(self):
        _check(_lib.rondo_start(self._handle))
        return self

    def test(self):
        """Whether it is complete."""
        if self._handle is None:
            return True
        done = ctypes.c_int()
        code = _lib.rondo_test(self._handle, ctypes.byref(done))
        if (done.value or code) and not self._persistent:
            self._handle = self._keep = None
        _check(code)
        return bool(done.value)

    def wait(self):
        if self._handle is None:
            return
        code = _lib.rondo_wait(self._handle)
        if not self._persistent:
            self._handle = self._keep = None
        _check(code)

    def free(self):
        """Of a persistent request that is not active."""
        if self._handle is not None:
            _check(_lib.rondo_request_free(ctypes.byref(self._handle)))
            self._handle = self._keep = None


class Communicator:
    """Ranks that communicate. Its methods are the collectives and messages of rondo.h."""

    def __init__(self, handle, runtime):
        self._handle, self._runtime = handle, runtime
        rank, size = ctypes.c_int(), ctypes.c_int()
        _check(_lib.rondo_comm_rank(handle, ctypes.byref(rank)))
        _check(_lib.rondo_comm_size(handle, ctypes.byref(size)))
        self.rank, self.size = rank.value, size.value

    def _made(self, call, *arguments):
        handle = ctypes.c_void_p()
        _check(call(self._handle, *arguments, ctypes.byref(handle)))
        return Communicator(handle, self._runtime) if handle.value else None

    def split(self, color, key=0):
        """None on ranks whose color is below 0."""
        return self._made(_lib.rondo_comm_split, color, key)

    def dup(self):
        return self._made(_lib.rondo_comm_dup)

    def create_group(self, ranks, tag=0):
        """Of these ranks, which alone call it."""
        return self._made(_lib.rondo_comm_create_group, (ctypes.c_int * len(ranks))(*ranks), len(ranks), tag)

    def shrink(self, excluded):
        return self._made(_lib.rondo_comm_shrink, (ctypes.c_int * len(excluded))(*excluded), len(excluded))

    def shrink_failed(self):
        """Of the ranks that are alive, upon which they agree."""
        return self._made(_lib.rondo_comm_shrink, None, -1)

    def grow(self, size, unique_id=None, device="auto", connect_timeout=-1.0):
        """Makes a runtime of these ranks and of new ones, which call Runtime(rank, size, unique_id). One rank gives the id."""
        config = _config(-1, -1, device, connect_timeout=connect_timeout)
        handle = ctypes.c_void_p()
        _check(_lib.rondo_comm_grow(self._handle, size, None if unique_id is None else ctypes.byref(_id(unique_id)),
                                    ctypes.byref(config), ctypes.byref(handle)))
        return Runtime._of(handle)

    def abort(self, code=1):
        _check(_lib.rondo_comm_abort(self._handle, code))

    def revoke(self):
        _check(_lib.rondo_comm_revoke(self._handle))

    def agree(self, flag):
        """The bitwise AND of the flags of all ranks that are alive. Raises if one has died that not all have acknowledged."""
        value = ctypes.c_int(flag)
        _check(_lib.rondo_comm_agree(self._handle, ctypes.byref(value)))
        return value.value

    def free(self):
        _check(_lib.rondo_comm_free(ctypes.byref(self._handle)))


def _allreduce(comm, send, recv, op="sum"):
    send, recv = _input(send), _output(recv)
    return [send, recv], [send.address, recv.address, ctypes.c_size_t(recv.count), recv.type, _OPS[op]]


def _reduce(comm, send, recv, op="sum", root=0):
    send, recv = _input(send), _output(recv)
    one = recv if send is IN_PLACE else send
    return [send, recv], [send.address, recv.address, ctypes.c_size_t(one.count), one.type, _OPS[op], root]


def _bcast(comm, buffer, root=0):
    buffer = _output(buffer)
    return [buffer], [buffer.address, ctypes.c_size_t(buffer.count), buffer.type, root]


def _reduce_scatter_block(comm, send, recv, op="sum"):
    send, recv = _input(send), _output(recv)
    count = recv.count // comm.size if send is IN_PLACE else recv.count
    _expect("send", send, count * comm.size)
    return [send, recv], [send.address, recv.address, ctypes.c_size_t(count), recv.type, _OPS[op]]


def _reduce_scatter(comm, send, recv, recvcounts, op="sum"):
    send, recv = _input(send), _output(recv)
    _entries(comm, recvcounts)
    _expect("send", send, sum(recvcounts))
    return [send, recv], [send.address, recv.address, _sizes(recvcounts), recv.type, _OPS[op]]


def _allgather(comm, send, recv):
    send, recv = _input(send), _output(recv)
    count = recv.count // comm.size
    _expect("send", send, count)
    return [send, recv], [send.address, recv.address, ctypes.c_size_t(count), recv.type]


def _allgatherv(comm, send, recv, counts, displs=None):
    send, recv = _input(send), _output(recv)
    _entries(comm, counts)
    displs = _displacements(counts) if displs is None else displs
    _expect("send", send, counts[comm.rank])
    _within("recv", recv, counts, displs)
    return [send, recv], [send.address, ctypes.c_size_t(counts[comm.rank]), recv.address, _sizes(counts), _sizes(displs), recv.type]


def _alltoall(comm, send, recv):
    send, recv = _input(send), _output(recv)
    _expect("send", send, recv.count)
    return [send, recv], [send.address, recv.address, ctypes.c_size_t(recv.count // comm.size), recv.type]


def _alltoallv(comm, send, scounts, recv, rcounts, sdispls=None, rdispls=None):
    send, recv = _input(send), _output(recv)
    _entries(comm, rcounts)
    sdispls = _displacements(scounts) if sdispls is None else sdispls
    rdispls = _displacements(rcounts) if rdispls is None else rdispls
    _within("recv", recv, rcounts, rdispls)
    if send is not IN_PLACE:
        _entries(comm, scounts)
        _within("send", send, scounts, sdispls)
    return [send, recv], [send.address, _sizes(scounts), _sizes(sdispls), recv.address, _sizes(rcounts), _sizes(rdispls), recv.type]


def _gather(comm, send, recv=None, root=0):
    send, recv = _input(send), _output(recv)
    one, count = (recv, recv.count // comm.size) if send is IN_PLACE else (send, send.count)
    if comm.rank == root:
        _expect("recv", recv, count * comm.size)
    return [send, recv], [send.address, recv.address, ctypes.c_size_t(count), one.type, root]


def _scatter(comm, send, recv, root=0):
    send, recv = _input(send), _output(recv) if recv is not IN_PLACE else IN_PLACE
    one, count = (send, send.count // comm.size) if recv is IN_PLACE else (recv, recv.count)
    if comm.rank == root:
        _expect("send", send, count * comm.size)
    return [send, recv], [send.address, recv.address, ctypes.c_size_t(count), one.type, root]


def _send(comm, buffer, dest):
    buffer = _input(buffer)
    return [buffer], [buffer.address, ctypes.c_size_t(buffer.count), buffer.type, dest]


def _recv(comm, buffer, source):
    buffer = _output(buffer)
    return [buffer], [buffer.address, ctypes.c_size_t(buffer.count), buffer.type, source]


def _barrier(comm):
    return [], []


def _input(buffer):
    return IN_PLACE if buffer is IN_PLACE else _Nothing() if buffer is None else _Buffer(buffer, False)


def _output(buffer):
    return _Nothing() if buffer is None else _Buffer(buffer, True)


def _expect(name, buffer, count):
    if buffer is not IN_PLACE and buffer.count != count:
        raise ValueError(f"{name} has {buffer.count} elements, and not {count}")


def _entries(comm, counts):
    if len(counts) != comm.size:
        raise ValueError(f"{len(counts)} counts for {comm.size} ranks")


def _within(name, buffer, counts, displs):
    if len(displs) != len(counts):
        raise ValueError(f"{len(displs)} displacements for {len(counts)} counts")
    end = max((d + c for c, d in zip(counts, displs)), default=0)
    if end > buffer.count:
        raise ValueError(f"{name} has {buffer.count} elements, and a block ends at {end}")


def _displacements(counts):
    return [sum(counts[:i]) for i in range(len(counts))]


def _method(name, prepare, form):
    function = getattr(_lib, {"": f"rondo_{name}", "i": f"rondo_i{name}", "_init": f"rondo_{name}_init"}[form])

    def method(self, *arguments, **named):
        buffers, values = prepare(self, *arguments, **named)
        types = {b.type for b in buffers if b.type is not None}
        if len(types) > 1:
            raise TypeError("the buffers differ in type")
        if form == "":
            _check(function(*values, self._handle))
            return None
        request = ctypes.c_void_p()
        if form == "i":
            _check(function(*values, self._handle, ctypes.byref(request)))
        else:
            _check(function(*values, self._handle, None, ctypes.byref(request)))
        return Request(request, buffers, form == "_init")

    method.__name__ = {"": name, "i": f"i{name}", "_init": f"{name}_init"}[form]
    method.__doc__ = f"rondo_{name} of rondo.h."
    return method


for _name, _prepare in [("allreduce", _allreduce), ("reduce", _reduce), ("bcast", _bcast), ("allgather", _allgather),
                        ("reduce_scatter_block", _reduce_scatter_block), ("reduce_scatter", _reduce_scatter),
                        ("allgatherv", _allgatherv), ("alltoall", _alltoall), ("alltoallv", _alltoallv), ("gather", _gather),
                        ("scatter", _scatter), ("scan", _allreduce), ("exscan", _allreduce), ("alltonext", lambda c, s, r: (
                            _allreduce(c, s, r)[0], _allreduce(c, s, r)[1][:-1])),
                        ("send", _send), ("recv", _recv), ("barrier", _barrier)]:
    for _form in ("", "i", "_init"):
        _made = _method(_name, _prepare, _form)
        setattr(Communicator, _made.__name__, _made)


class Runtime:
    """One rank on one device. Arguments are fields of rondo_config_t; without them everything is from the environment."""

    def __init__(self, rank=-1, size=-1, unique_id=None, device="host", timeout=-1.0, check=-1, connect_timeout=-1.0):
        config = _config(rank, size, device, timeout, check, connect_timeout)
        if unique_id is not None:
            config.unique_id = ctypes.pointer(_id(unique_id))
        self._handle = ctypes.c_void_p()
        _check(_lib.rondo_init(ctypes.byref(self._handle), ctypes.byref(config)))
        self._find_world()

    @classmethod
    def _of(cls, handle):
        runtime = cls.__new__(cls)
        runtime._handle = handle
        runtime._find_world()
        return runtime

    def _find_world(self):
        world = ctypes.c_void_p()
        _check(_lib.rondo_comm_world(self._handle, ctypes.byref(world)))
        self.world = Communicator(world, self)

    def report(self):
        """What all ranks are doing."""
        text = ctypes.create_string_buffer(1 << 16)
        _check(_lib.rondo_report(self._handle, text, ctypes.c_size_t(len(text))))
        return text.value.decode(errors="replace")

    def synchronize(self):
        _check(_lib.rondo_device_synchronize(self._handle))

    def finalize(self):
        if self._handle is not None:
            _check(_lib.rondo_finalize(self._handle))
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None and self._handle is not None:
            self.world.abort()
        self.finalize()
