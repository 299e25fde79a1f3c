"""The C library: its file, its declarations, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

VERSION = 1_000
OPERATIONS = {"read": 0, "write": 1, "discard": 2, "flush": 3}
PENDING, E_HANDLE, E_TIMED_OUT, E_AGAIN, E_TOO_SMALL = 1, -1, -3, -4, -12
FOREVER = OFFSET_NEXT = -1
STRICT, UNLIMITED = 1, 2
NAME_SIZE = 64


class Error(Exception):
    """An error, with the code of the library and the errno of a failed system call, or 0."""

    def __init__(self, code: int, message: str, errno: int) -> None:
        super().__init__(message)
        self.code = code
        self.errno = errno


class TimedOut(Error, TimeoutError):
    """No permit was granted within the timeout."""


class HandleError(Error):
    """The object was closed, or belongs to the parent of this forked process."""


def unsigned(number: int, bits: int = 64) -> int:
    """The number, which ctypes would cut to its size without a word."""
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{number} is out of range: from 0 on, below 2^{bits}")
    return number


class _Sized(ctypes.Structure):
    """Structures that begin with their size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **fields)
        for name, given in fields.items():
            if isinstance(given, int) and given != getattr(self, name):
                raise ValueError(f"{given} is out of range for {name}")


class DiskRates(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("name_len", c_size_t),
        ("mountpoint", c_char_p),
        ("mountpoint_len", c_size_t),
        ("read_iops", c_uint64),
        ("write_iops", c_uint64),
        ("read_bandwidth", c_uint64),
        ("write_bandwidth", c_uint64),
    ]


class Limits(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("bytes_per_second", c_uint64),
        ("operations_per_second", c_uint64),
    ]


class Event(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("user_data", c_uint64),
        ("waiting", c_uint64),
        ("permit", c_uint64),
        ("code", c_int),
    ]


class Deleted(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("files", c_uint64),
        ("bytes", c_uint64),
        ("bytes_total", c_uint64),
        ("steps", c_uint64),
        ("state", c_uint32),
        ("unlinked", c_uint32),
    ]


class DeleterOptions(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("rate", c_uint64),
        ("commands_per_second", c_uint64),
        ("trash_in", c_char_p),
        ("trash_in_len", c_size_t),
        ("files_max", c_uint64),
        ("flags", c_uint32),
    ]


class SnapshotInfo(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("uptime_ns", c_uint64),
        ("disks", c_uint64),
        ("classes", c_uint64),
        ("unlisted_opens", c_uint64),
        ("bugs", c_uint64),
    ]


class DiskStats(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", ctypes.c_char * NAME_SIZE),
        ("name_len", c_size_t),
        ("effective_goal_ns", c_uint64),
        ("in_flight_ns", c_uint64),
        ("speed_permille", c_uint64),
        ("unscheduled_read", c_uint64),
        ("unscheduled_written", c_uint64),
    ]


class ClassStats(_Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", ctypes.c_char * NAME_SIZE),
        ("name_len", c_size_t),
        ("shares", c_uint32),
        ("queued", c_uint32),
        ("in_disk", c_uint32),
        ("held_long", c_uint32),
        ("operations", c_uint64 * 4),
        ("bytes", c_uint64 * 4),
        ("errors", c_uint64),
        ("cancelled", c_uint64),
        ("consumption_ns", c_uint64),
        ("starved_ns", c_uint64),
        ("limited_ns", c_uint64),
        ("queue_p50_ns", c_uint64),
        ("queue_p99_ns", c_uint64),
        ("disk_p50_ns", c_uint64),
        ("disk_p99_ns", c_uint64),
    ]


_HANDLE, _OUT, _TEXT = c_uint64, POINTER(c_uint64), [c_char_p, c_size_t]
_ASK = [_HANDLE, c_int, c_uint64]
_FUNCTIONS: dict[str, list[Any]] = {
    "scheduler_from_file": [*_TEXT, c_uint32, _OUT],
    "scheduler_from_rates": [POINTER(DiskRates), c_size_t, c_uint32, _OUT],
    "scheduler_reload": [_HANDLE, *_TEXT],
    "class_add": [_HANDLE, *_TEXT, c_uint32, _OUT],
    "group_add": [_HANDLE, *_TEXT, c_uint32, _OUT],
    "class_find": [_HANDLE, *_TEXT, _OUT],
    "class_on_file": [_HANDLE, c_int, _OUT],
    "remove": [_HANDLE],
    "get_shares": [_HANDLE, POINTER(c_uint32)],
    "set_shares": [_HANDLE, c_uint32],
    "set_limits": [_HANDLE, POINTER(Limits)],
    "class_enter": [_HANDLE],
    "class_leave": [_HANDLE],
    "admit": [*_ASK, c_int64, _OUT],
    "admit_event": [*_ASK, _HANDLE, c_uint64, _OUT, _OUT],
    "complete": [_HANDLE, c_int64],
    "events_new": [_OUT],
    "events_fd": [_HANDLE, POINTER(c_int)],
    "events_next": [_HANDLE, POINTER(Event)],
    "writer_new": [_HANDLE, c_int, c_uint64, _OUT],
    "write": [_HANDLE, c_void_p, c_size_t, c_int64],
    "writer_sync": [_HANDLE, c_uint32],
    "writer_dirty": [_HANDLE, _OUT],
    "sync": [_HANDLE, c_int, c_uint32],
    "read": [_HANDLE, c_int, c_void_p, c_size_t, c_uint64, POINTER(c_size_t)],
    "prefetch": [_HANDLE, c_int, c_uint64, c_uint64],
    "deleter_new": [_HANDLE, POINTER(DeleterOptions), _OUT],
    "delete": [_HANDLE, *_TEXT, _OUT],
    "deletion_wait": [_HANDLE, POINTER(Deleted)],
    "deletion_progress": [_HANDLE, POINTER(Deleted)],
    "snapshot_take": [_HANDLE, POINTER(SnapshotInfo), _OUT],
    "snapshot_disk": [_HANDLE, c_uint64, POINTER(DiskStats)],
    "snapshot_class": [_HANDLE, c_uint64, c_uint64, POINTER(ClassStats)],
    "snapshot_disk_name": [_HANDLE, c_uint64, c_void_p, c_size_t, POINTER(c_size_t)],
    "snapshot_class_name": [_HANDLE, c_uint64, c_uint64, c_void_p, c_size_t, POINTER(c_size_t)],
    "snapshot_openmetrics": [_HANDLE, c_void_p, c_size_t, POINTER(c_size_t)],
    "free": [_HANDLE],
    "check_version": [c_uint32],
    "last_errno": [],
}


def _load() -> ctypes.CDLL:
    """`FOREBAY_LIBRARY`, else the library in the package, else the system's."""
    named = os.environ.get("FOREBAY_LIBRARY")
    own = Path(__file__).with_name("libforebay.so.0")
    path = named or (str(own) if own.exists() else "libforebay.so.0")
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        message = f"{error}: install the wheel, or `make -C crates/forebay-capi install`"
        raise ImportError(message) from None
    try:
        functions = {name: getattr(loaded, f"forebay_{name}") for name in _FUNCTIONS}
    except AttributeError as error:
        raise ImportError(f"{error}: the file is not libforebay, or another version of it") from None
    for name, function in functions.items():
        function.argtypes, function.restype = _FUNCTIONS[name], c_int
    loaded.forebay_last_error.argtypes = [POINTER(c_size_t)]
    loaded.forebay_last_error.restype = c_char_p
    return loaded


library = _load()


def error_of(code: int) -> Error:
    """The last error of this thread."""
    message = library.forebay_last_error(None).decode(errors="replace")
    kinds = {E_TIMED_OUT: TimedOut, E_HANDLE: HandleError}
    return kinds.get(code, Error)(code, message, library.forebay_last_errno())


def check(code: int) -> int:
    if code < 0:
        raise error_of(code)
    return code


def made(function: Any, *arguments: Any) -> int:
    """The handle that a function of the library returns."""
    handle = c_uint64()
    check(function(*arguments, byref(handle)))
    return handle.value


try:
    check(library.forebay_check_version(VERSION))
except Error as error:
    raise ImportError(str(error)) from None
