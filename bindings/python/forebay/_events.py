"""Waiting for permits with a descriptor, so that signals interrupt threads, and event loops do not block."""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
import weakref
from ctypes import byref, c_int, c_uint64
from typing import Any, Optional, Protocol

from ._library import E_AGAIN, E_TIMED_OUT, PENDING, Error, Event, TimedOut, check, error_of, library, made


class Events:
    """A queue of events of the library."""

    def __init__(self) -> None:
        self.handle = made(library.forebay_events_new)
        self._finalizer = weakref.finalize(self, library.forebay_free, self.handle)
        fd = c_int()
        check(library.forebay_events_fd(self.handle, byref(fd)))
        self.fd = fd.value
        self._event = Event()
        # How requests have ended, until who waits looks.
        self.ended: dict[int, tuple[int, Optional[Error]]] = {}

    def take(self) -> None:
        """Moves all that has happened to `ended`. A signal handler that raises in between loses nothing:
        what it kept from being moved is still in the event, and is moved the next time."""
        event = self._event
        while True:
            if not event.waiting:
                code = library.forebay_events_next(self.handle, byref(event))
                if code == E_AGAIN:
                    return
                check(code)
            # a handler may take events, too
            seen = Event.from_buffer_copy(event)
            if seen.waiting:
                self.ended[seen.waiting] = seen.permit, error_of(seen.code) if seen.code < 0 else None
            if event.waiting == seen.waiting:
                event.waiting = 0


class Kept(Protocol):
    """What keeps a permit, and completes it at its end."""

    _handle: int


class _OfThread(threading.local):
    events: Optional[Events] = None


# How long the main thread waits at a time, in milliseconds. Only it handles signals, and a signal that
# comes just before the wait does not interrupt it.
SIGNALS_MS = 50
# And another thread: `poll` takes no more than some weeks.
LONGEST_MS = 3_600_000

_of_thread = _OfThread()
# A loop keeps its own as long as it is open.
_of_loops: weakref.WeakKeyDictionary[Any, weakref.ref[OfLoop]] = weakref.WeakKeyDictionary()


def _begin_child() -> None:
    """Forgets the requests of the parent."""
    global _of_thread, _of_loops
    _of_thread, _of_loops = _OfThread(), weakref.WeakKeyDictionary()


os.register_at_fork(after_in_child=_begin_child)


def wait(asked: tuple[int, int, int], timeout: Optional[float], kept: Kept) -> None:
    """A permit for the calling thread. Other threads run meanwhile, and signals end it: whenever a
    handler raises, the permit is kept, given back or not asked for."""
    of_thread = _of_thread
    if of_thread.events is None:
        of_thread.events = Events()
    events = of_thread.events
    deadline = None if timeout is None else time.monotonic() + timeout
    permit, waiting = c_uint64(), c_uint64()
    try:
        check(library.forebay_admit_event(*asked, events.handle, 0, byref(permit), byref(waiting)))
        if waiting.value:
            _wait_for(events, waiting.value, deadline)
            permit.value, error = events.ended[waiting.value]
            if error is not None:
                raise error
        kept._handle = permit.value
        events.ended.pop(waiting.value, None)
    except BaseException:
        if library.forebay_free(waiting) != 0:
            events.take()
            permit.value, _ = events.ended.pop(waiting.value, (permit.value, None))
        library.forebay_complete(permit, 0)
        raise


def _wait_for(events: Events, waiting: int, deadline: Optional[float]) -> None:
    """Until the request has ended, or its time."""
    longest = SIGNALS_MS if threading.current_thread() is threading.main_thread() else LONGEST_MS
    poll = select.poll()
    poll.register(events.fd, select.POLLIN)
    while waiting not in events.ended:
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        if not poll.poll(longest if left is None else min(left, longest)) and left == 0:
            raise TimedOut(E_TIMED_OUT, "no permit within the time given", 0)
        events.take()


class OfLoop:
    """The waiting requests of the tasks of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.events = Events()
        self.futures: dict[int, asyncio.Future[int]] = {}
        loop.add_reader(self.events.fd, self.deliver)

    def deliver(self) -> None:
        self.events.take()
        for waiting in list(self.events.ended):
            permit, error = self.events.ended.pop(waiting)
            future = self.futures.pop(waiting, None)
            if future is None or future.done():
                library.forebay_complete(permit, 0)
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(permit)


async def wait_in_task(asked: tuple[int, int, int]) -> int:
    """A permit for the running task. To cancel it gives the place back, and so does the end of its loop."""
    loop = asyncio.get_running_loop()
    found = _of_loops.get(loop)
    of_loop = found() if found is not None else None
    if of_loop is None:
        of_loop = OfLoop(loop)
        _of_loops[loop] = weakref.ref(of_loop)
    permit, waiting = c_uint64(), c_uint64()
    events = of_loop.events.handle
    code = library.forebay_admit_event(*asked, events, 0, byref(permit), byref(waiting))
    if check(code) != PENDING:
        return permit.value
    future: asyncio.Future[int] = loop.create_future()
    of_loop.futures[waiting.value] = future
    try:
        return await future
    except BaseException:
        of_loop.futures.pop(waiting.value, None)
        if library.forebay_free(waiting) != 0 and future.done() and not future.cancelled():
            if future.exception() is None:
                library.forebay_complete(future.result(), 0)
        raise
