"""Schedulers, classes, permits, writers and deleters."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from ctypes import byref, c_size_t, c_uint32, c_uint64
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _events, _library
from ._library import ClassStats, DiskStats, Error, HandleError, TimedOut, check, library, made, unsigned

__all__ = [
    "Class",
    "Deleter",
    "Deletion",
    "Disk",
    "Error",
    "Group",
    "HandleError",
    "Permit",
    "Scheduler",
    "Snapshot",
    "TimedOut",
    "Writer",
]

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def _text(text: str) -> tuple[bytes, int]:
    encoded = text.encode()
    return encoded, len(encoded)


def _path(path: _Path) -> tuple[bytes, int]:
    encoded = os.fsencode(path)
    return encoded, len(encoded)


def _fd(file: Any) -> int:
    return file if isinstance(file, int) else file.fileno()


def _operation(name: str) -> int:
    try:
        return _library.OPERATIONS[name]
    except KeyError:
        names = ", ".join(_library.OPERATIONS)
        raise ValueError(f"{name!r} is no operation: use one of {names}") from None


class _Handle:
    """An object with a handle of the library, which is freed with it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def close(self) -> None:
        """Frees the handle. The object must not be used after that."""
        handle, self._handle = self._handle, 0
        if handle:
            check(library.forebay_free(handle))

    def __del__(self, free: Any = library.forebay_free) -> None:
        handle = getattr(self, "_handle", 0)
        if handle:
            free(handle)


class Permit(_Handle):
    """Permission for one I/O now. Hold it for exactly as long as the I/O takes, in a `with`."""

    def complete(self, result: int = 0) -> None:
        """Ends the permit after its I/O. `result` is the number of bytes, or negative after an error."""
        code = library.forebay_complete(self._handle, result)
        self._handle = 0
        check(code)

    def close(self) -> None:
        self.complete()

    def __enter__(self) -> Permit:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._handle:
            self.complete(0 if kind is None else -1)

    def __del__(self, complete: Any = library.forebay_complete, warn: Any = warnings.warn) -> None:
        handle = getattr(self, "_handle", 0)
        if handle and complete(handle, 0) == 0:
            warn("a permit was not released: use `with`", ResourceWarning, 2, self)


class Admission:
    """A request for a permit, for tasks: use it in `async with`, or `await` it."""

    def __init__(self, asked: tuple[int, int, int]) -> None:
        self._asked = asked
        self._permit: Optional[Permit] = None

    async def _wait(self) -> Permit:
        return Permit(await _events.wait_in_task(self._asked))

    def __await__(self) -> Generator[Any, None, Permit]:
        return self._wait().__await__()

    async def __aenter__(self) -> Permit:
        self._permit = await self._wait()
        return self._permit

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._permit is not None:
            self._permit.__exit__(kind, error, trace)


class _Asks(_Handle):
    def _asked(self, op: str, length: int) -> tuple[int, int, int]:
        return self._handle, _operation(op), unsigned(length)

    def admit(self, op: str, length: int, timeout: Optional[float] = None) -> Permit:
        """Waits until the scheduler grants a permit to the class, for `timeout` seconds at most.

        `op` is "read", "write", "discard" or "flush". Other threads run while it waits. A signal
        handler that raises an exception, as for Ctrl-C, ends the wait."""
        if timeout is not None and timeout < 0:
            raise ValueError(f"the timeout {timeout} is below 0")
        permit = Permit(0)
        _events.wait(self._asked(op, length), timeout, permit)
        return permit

    def try_admit(self, op: str, length: int) -> Optional[Permit]:
        """A permit if it does not have to wait for one, else None."""
        permit, place = Permit(0), c_uint64()
        try:
            check(library.forebay_admit(*self._asked(op, length), 0, byref(place)))
            permit._handle = place.value
        except TimedOut:
            return None
        except BaseException:
            library.forebay_complete(place, 0)
            raise
        return permit

    def admit_async(self, op: str, length: int) -> Admission:
        """`admit` for a task: `async with queries.admit_async("read", 4096):`."""
        return Admission(self._asked(op, length))


class _Member(_Handle):
    @property
    def shares(self) -> int:
        shares = c_uint32()
        check(library.forebay_get_shares(self._handle, byref(shares)))
        return shares.value

    @shares.setter
    def shares(self, shares: int) -> None:
        check(library.forebay_set_shares(self._handle, unsigned(shares, 32)))

    def set_limits(self, bytes_per_second: int = 0, operations_per_second: int = 0) -> None:
        """Sets upper limits on each disk, in addition to the shares. 0 means no limit."""
        limits = _library.Limits(
            bytes_per_second=bytes_per_second, operations_per_second=operations_per_second
        )
        check(library.forebay_set_limits(self._handle, byref(limits)))

    def remove(self) -> None:
        """Removes it from all disks."""
        check(library.forebay_remove(self._handle))


class _Parent(_Handle):
    def add_class(self, name: str, shares: int) -> Class:
        return Class(made(library.forebay_class_add, self._handle, *_text(name), unsigned(shares, 32)))

    def add_group(self, name: str, shares: int) -> Group:
        return Group(made(library.forebay_group_add, self._handle, *_text(name), unsigned(shares, 32)))


class Class(_Asks, _Member):
    """A priority class."""

    def on_file(self, file: Any) -> Class:
        """The same class on the disk of the file."""
        return Class(made(library.forebay_class_on_file, self._handle, _fd(file)))

    @contextlib.contextmanager
    def enter(self) -> Iterator[None]:
        """Makes this the class of the thread's calls on the scheduler."""
        check(library.forebay_class_enter(self._handle))
        try:
            yield
        finally:
            check(library.forebay_class_leave(self._handle))

    def readinto(self, file: Any, buffer: Any, offset: int) -> int:
        """Reads into a writable buffer through the page cache. Only misses wait for permits."""
        size, done = memoryview(buffer).nbytes, c_size_t()
        place = (ctypes.c_char * size).from_buffer(buffer) if size else None
        check(library.forebay_read(self._handle, _fd(file), place, size, unsigned(offset), byref(done)))
        return done.value

    def read(self, file: Any, length: int, offset: int) -> bytes:
        """Like `readinto`, but returns new bytes. They are fewer than `length` if the file ends before."""
        buffer = bytearray(length)
        return bytes(buffer[: self.readinto(file, buffer, offset)])

    def prefetch(self, file: Any, offset: int = 0, length: Optional[int] = None) -> None:
        """Reads a range into the page cache under permits, for example before it is read through a mapping."""
        length = (1 << 64) - 1 if length is None else length
        check(library.forebay_prefetch(self._handle, _fd(file), unsigned(offset), unsigned(length)))

    def sync(self, file: Any) -> None:
        """Makes the file durable. Its dirty bytes are first written back in parts, scheduled in the class."""
        check(library.forebay_sync(self._handle, _fd(file), 0))

    def writer(self, file: Any, dirty_max: int = 0) -> Writer:
        """A writer to a file that is open for writing. Its write-back is scheduled in the class."""
        return Writer(self._handle, file, dirty_max)

    def deleter(self, rate: int = 0) -> Deleter:
        """A deleter that frees files in steps, at most `rate` bytes per second."""
        options = _library.DeleterOptions(rate=rate)
        return Deleter(made(library.forebay_deleter_new, self._handle, byref(options)))


class Group(_Parent, _Member):
    """A group of classes, which competes as one class with its shares."""


class Writer(_Handle):
    """A writer through the page cache. It keeps the file open."""

    def __init__(self, of: int, file: Any, dirty_max: int) -> None:
        self._file = file
        super().__init__(made(library.forebay_writer_new, of, _fd(file), unsigned(dirty_max)))

    def write(self, data: Any, offset: Optional[int] = None) -> None:
        """Writes all of `data` at `offset`, or after the previous write."""
        view = memoryview(data).cast("B")
        copied = data if isinstance(data, bytes) else view.tobytes()
        where = _library.OFFSET_NEXT if offset is None else unsigned(offset, 63)
        check(library.forebay_write(self._handle, copied, view.nbytes, where))

    def sync(self) -> None:
        """Makes the writes durable."""
        check(library.forebay_writer_sync(self._handle, 0))

    @property
    def dirty(self) -> int:
        """The number of written bytes that are not on the disk yet."""
        dirty = c_uint64()
        check(library.forebay_writer_dirty(self._handle, byref(dirty)))
        return dirty.value

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Deleter(_Handle):
    """Deletes files in small steps, scheduled in a class."""

    def delete(self, path: _Path) -> Deletion:
        return Deletion(made(library.forebay_delete, self._handle, *_path(path)))


class Deletion(_Handle):
    """A requested deletion."""

    def wait(self) -> int:
        """Waits until the file's blocks are freed. Returns the number of bytes that were freed in steps."""
        deleted = _library.Deleted()
        while True:
            check(library.forebay_deletion_progress(self._handle, byref(deleted)))
            if deleted.state == 3:
                break
            time.sleep(0.01)
        check(library.forebay_deletion_wait(self._handle, byref(deleted)))
        return int(deleted.bytes)


@dataclass(frozen=True)
class Disk:
    """A disk with its rates. The vendor's figures are enough to begin with."""

    name: str
    read_iops: int
    write_iops: int
    read_bandwidth: int
    write_bandwidth: int
    mountpoint: str = ""


@dataclass(frozen=True)
class Snapshot:
    """The counters at one moment: statistics of each disk and of each class on it, by name."""

    uptime_ns: int
    unlisted_opens: int
    bugs: int
    disks: dict[str, DiskStats]
    classes: dict[str, dict[str, ClassStats]]


class Scheduler(_Parent, _Asks):
    """Disks, and the classes that share them. Its own `admit` uses the class that the thread has entered."""

    @classmethod
    def from_file(cls, path: _Path, *, strict: bool = False, unlimited: bool = False) -> Scheduler:
        """Makes a scheduler for the disks in a file of I/O properties. If `strict`, it refuses other files."""
        flags = _flags(strict, unlimited)
        return cls(made(library.forebay_scheduler_from_file, *_path(path), flags))

    @classmethod
    def from_rates(
        cls, disks: Sequence[Disk], *, strict: bool = False, unlimited: bool = False
    ) -> Scheduler:
        """Makes a scheduler for disks with the given rates."""
        rates = (_library.DiskRates * len(disks))(*[_rates(disk) for disk in disks])
        flags = _flags(strict, unlimited)
        return cls(made(library.forebay_scheduler_from_rates, rates, len(disks), flags))

    def reload(self, path: _Path) -> None:
        """Reads the figures of the disks from a file of I/O properties, without stopping I/O."""
        check(library.forebay_scheduler_reload(self._handle, *_path(path)))

    def find_class(self, name: str) -> Class:
        return Class(made(library.forebay_class_find, self._handle, *_text(name)))

    def snapshot(self) -> Snapshot:
        """A snapshot of all counters."""
        info, handle = _library.SnapshotInfo(), c_uint64()
        check(library.forebay_snapshot_take(self._handle, byref(info), byref(handle)))
        disks, classes = {}, {}
        try:
            for disk in range(info.disks):
                of_disk = DiskStats()
                check(library.forebay_snapshot_disk(handle, disk, byref(of_disk)))
                name = _written(library.forebay_snapshot_disk_name, handle, disk, size=of_disk.name_len)
                disks[name], classes[name] = of_disk, {}
                for index in range(info.classes):
                    stats = ClassStats()
                    check(library.forebay_snapshot_class(handle, disk, index, byref(stats)))
                    of_class = _written(
                        library.forebay_snapshot_class_name, handle, disk, index, size=stats.name_len
                    )
                    classes[name][of_class] = stats
        finally:
            library.forebay_free(handle)
        return Snapshot(info.uptime_ns, info.unlisted_opens, info.bugs, disks, classes)

    def open_metrics(self) -> str:
        """All metrics as OpenMetrics text, for Prometheus."""
        return _written(library.forebay_snapshot_openmetrics, self._handle, size=1 << 16)


def _written(function: Any, *arguments: Any, size: int) -> str:
    """The text that a function of the library writes, which may be longer than `size`."""
    length = c_size_t()
    while True:
        buffer = ctypes.create_string_buffer(size)
        code = function(*arguments, buffer, size, byref(length))
        if code != _library.E_TOO_SMALL:
            check(code)
            return buffer.raw[: length.value].decode()
        size = length.value * 2


def _flags(strict: bool, unlimited: bool) -> int:
    return (_library.STRICT if strict else 0) | (_library.UNLIMITED if unlimited else 0)


def _rates(disk: Disk) -> _library.DiskRates:
    (name, name_len), (mountpoint, mountpoint_len) = _text(disk.name), _path(disk.mountpoint)
    return _library.DiskRates(
        name=name,
        name_len=name_len,
        mountpoint=mountpoint,
        mountpoint_len=mountpoint_len,
        read_iops=disk.read_iops,
        write_iops=disk.write_iops,
        read_bandwidth=disk.read_bandwidth,
        write_bandwidth=disk.write_bandwidth,
    )
