"""Waiting for permits by a descriptor: threads can be interrupted, and event loops go on."""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
import weakref
from ctypes import byref, c_int, c_uint64
from typing import Any, Optional

from ._library import E_AGAIN, E_TIMED_OUT, PENDING, Error, Event, TimedOut, check, error_of, library, made


class Events:
    """A queue of events of the library."""

    def __init__(self) -> None:
        self.handle = made(library.forebay_events_new)
        self._finalizer = weakref.finalize(self, library.forebay_free, self.handle)
        fd = c_int()
        check(library.forebay_events_fd(self.handle, byref(fd)))
        self.fd = fd.value

    def next(self) -> Optional[tuple[int, int, Optional[Error]]]:
        """The request that has ended, and its permit or what went wrong."""
        event = Event()
        code = library.forebay_events_next(self.handle, byref(event))
        if code == E_AGAIN:
            return None
        check(code)
        return event.waiting, event.permit, error_of(event.code) if event.code < 0 else None

    def ask(self, asked: tuple[int, int, int]) -> tuple[int, int]:
        """A permit, or the request that waits for one; the other is 0."""
        permit, waiting = c_uint64(), c_uint64()
        code = library.forebay_admit_event(*asked, self.handle, 0, byref(permit), byref(waiting))
        return (0, waiting.value) if check(code) == PENDING else (permit.value, 0)


class _OfThread(threading.local):
    events: Optional[Events] = None

    def __init__(self) -> None:
        # What ended while a signal handler asked for something else.
        self.ended: dict[int, tuple[int, Optional[Error]]] = {}


# How long the main thread waits at a time, in milliseconds. It alone handles signals, and one that
# comes just before the wait does not interrupt it.
SIGNALS_MS = 50

_of_thread = _OfThread()
_of_loops: weakref.WeakKeyDictionary[Any, OfLoop] = weakref.WeakKeyDictionary()


def _begin_child() -> None:
    """What waited in the parent is the parent's."""
    global _of_thread, _of_loops
    _of_thread, _of_loops = _OfThread(), weakref.WeakKeyDictionary()


os.register_at_fork(after_in_child=_begin_child)


def wait(asked: tuple[int, int, int], timeout: Optional[float]) -> int:
    """A permit for the calling thread. Other threads run meanwhile, and signals end it."""
    of_thread = _of_thread
    if of_thread.events is None:
        of_thread.events = Events()
    events = of_thread.events
    deadline = None if timeout is None else time.monotonic() + timeout
    permit, waiting = events.ask(asked)
    if permit:
        return permit
    longest = SIGNALS_MS if threading.current_thread() is threading.main_thread() else None
    poll = select.poll()
    poll.register(events.fd, select.POLLIN)
    try:
        while waiting not in of_thread.ended:
            left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            waits = [ms for ms in (left, longest) if ms is not None]
            if not poll.poll(min(waits, default=None)) and left == 0:
                raise TimedOut(E_TIMED_OUT, "no permit within the time given", 0)
            while ended := events.next():
                of_thread.ended[ended[0]] = ended[1:]
    except BaseException:
        if library.forebay_free(waiting) != 0:
            while ended := events.next():
                of_thread.ended[ended[0]] = ended[1:]
            permit, _ = of_thread.ended.pop(waiting, (0, None))
            library.forebay_complete(permit, 0)
        raise
    permit, error = of_thread.ended.pop(waiting)
    if error is not None:
        raise error
    return permit


class OfLoop:
    """The requests that tasks of one event loop wait for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.events = Events()
        self.futures: dict[int, asyncio.Future[int]] = {}
        loop.add_reader(self.events.fd, self.look)

    def look(self) -> None:
        while ended := self.events.next():
            waiting, permit, error = ended
            future = self.futures.pop(waiting, None)
            if future is None or future.done():
                library.forebay_complete(permit, 0)
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(permit)


async def wait_in_task(asked: tuple[int, int, int]) -> int:
    """A permit for the running task. To cancel it gives the place back."""
    loop = asyncio.get_running_loop()
    of_loop = _of_loops.get(loop)
    if of_loop is None:
        of_loop = _of_loops[loop] = OfLoop(loop)
    permit, waiting = of_loop.events.ask(asked)
    if permit:
        return permit
    future: asyncio.Future[int] = loop.create_future()
    of_loop.futures[waiting] = future
    try:
        return await future
    except asyncio.CancelledError:
        of_loop.futures.pop(waiting, None)
        if library.forebay_free(waiting) != 0 and future.done() and not future.cancelled():
            if future.exception() is None:
                library.forebay_complete(future.result(), 0)
        raise
