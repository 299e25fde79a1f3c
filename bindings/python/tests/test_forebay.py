"""Tests of the package with a disk that is given by its rates."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from unittest import mock

import forebay


def scheduler_of(iops=100_000, **options):
    disk = forebay.Disk("disk", iops, iops, iops * 100_000, iops * 100_000)
    return forebay.Scheduler.from_rates([disk], **options)


def fill(queries):
    """Takes permits until the next one would have to wait."""
    held = []
    while (permit := queries.try_admit("read", 1 << 20)) is not None:
        held.append(permit)
    return held


def stats(scheduler):
    return scheduler.snapshot().classes["disk"]["queries"]


class Threads(unittest.TestCase):
    def test_a_permit_is_held_in_a_with(self):
        scheduler = scheduler_of()
        queries = scheduler.add_class("queries", 1000)
        with queries.admit("read", 4096):
            self.assertEqual(stats(scheduler).in_disk, 1)
        with self.assertRaises(ZeroDivisionError), queries.admit("read", 4096):
            1 / 0
        counted = stats(scheduler)
        self.assertEqual((counted.in_disk, counted.operations[0], counted.errors), (0, 1, 1))

    def test_admit_times_out_and_other_threads_run(self):
        queries = scheduler_of(200).add_class("queries", 1000)
        held, ran = fill(queries), threading.Event()
        threading.Thread(target=ran.set).start()
        with self.assertRaises(TimeoutError):
            queries.admit("read", 1 << 20, timeout=0.001)
        with self.assertRaises(ValueError):
            queries.admit("read", 4096, timeout=-2)
        self.assertTrue(ran.wait(10))
        for permit in held:
            permit.complete(1 << 20)
        with queries.admit("read", 4096, timeout=60):
            pass

    def test_a_thread_waits_for_any_time(self):
        for timeout in (None, 1e9, float("inf")):
            scheduler = scheduler_of(200)
            queries = scheduler.add_class("queries", 1000)
            held, ended = fill(queries), []

            def work(queries=queries, timeout=timeout, ended=ended):
                with queries.admit("read", 1 << 20, timeout=timeout):
                    ended.append(timeout)

            thread = threading.Thread(target=work)
            thread.start()
            while stats(scheduler).queued == 0 and thread.is_alive():
                time.sleep(0.001)
            for permit in held:
                permit.complete(1 << 20)
            thread.join()
            self.assertEqual(ended, [timeout])

    def test_a_signal_handler_that_raises_at_any_moment_loses_no_permit(self):
        scheduler = scheduler_of(20_000)
        queries = scheduler.add_class("queries", 1000)

        def interrupt(*_):
            raise InterruptedError

        def ask(turn):
            signal.setitimer(signal.ITIMER_REAL, (1 + turn % 500) * 1e-6)
            for _ in range(20):
                with queries.admit("read", 65_536):
                    pass
                permit = queries.try_admit("read", 4096)
                if permit is not None:
                    permit.complete()
            signal.setitimer(signal.ITIMER_REAL, 0)

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            # it may be raised where permits are dropped, too
            with warnings.catch_warnings(), mock.patch("sys.unraisablehook"):
                warnings.simplefilter("ignore", ResourceWarning)
                for turn in range(1000):
                    with contextlib.suppress(InterruptedError):
                        ask(turn)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        gc.collect()
        counted = stats(scheduler)
        self.assertEqual((counted.queued, counted.in_disk), (0, 0))

    def test_eight_threads_get_their_permits(self):
        scheduler = scheduler_of(2_000)
        queries = scheduler.add_class("queries", 1000)

        def work():
            for _ in range(25):
                with queries.admit("read", 65_536):
                    pass

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(stats(scheduler).operations[0], 200)

    def test_the_class_of_a_thread(self):
        scheduler = scheduler_of()
        queries = scheduler.add_class("queries", 1000)
        with queries.enter(), scheduler.admit("write", 4096):
            self.assertEqual(stats(scheduler).in_disk, 1)
        with scheduler.admit("write", 4096):
            self.assertEqual(stats(scheduler).in_disk, 0)

    def test_a_dropped_permit_warns_and_ends(self):
        scheduler = scheduler_of()
        queries = scheduler.add_class("queries", 1000)
        with self.assertWarns(ResourceWarning):
            queries.admit("read", 4096)
            gc.collect()
        self.assertEqual(stats(scheduler).in_disk, 0)

    def test_ctrl_c_ends_a_wait(self):
        program = """
import sys, forebay
queries = forebay.Scheduler.from_rates([forebay.Disk("disk", 1, 1, 4096, 4096)]).add_class("queries", 1)
held = []
while (permit := queries.try_admit("read", 1 << 20)) is not None:
    held.append(permit)
try:
    print("waits", flush=True)
    queries.admit("read", 1 << 20)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    for permit in held:
        permit.complete()
"""
        # The signal comes at a different moment each time, while the wait begins.
        for _ in range(10):
            command = [sys.executable, "-W", "error", "-c", program]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                try:
                    self.assertEqual(child.stdout.readline(), "waits\n")
                    child.send_signal(signal.SIGINT)
                    self.assertEqual(child.communicate(timeout=30)[0], "interrupted\n")
                finally:
                    child.kill()
            self.assertEqual(child.returncode, 0)


class Tasks(unittest.TestCase):
    def test_tasks_wait_without_threads(self):
        scheduler = scheduler_of(2_000)
        queries = scheduler.add_class("queries", 1000)

        async def work():
            async with queries.admit_async("read", 65_536):
                await asyncio.sleep(0)

        async def main():
            before = threading.active_count()
            await asyncio.gather(*[work() for _ in range(300)])
            return threading.active_count() - before

        self.assertEqual(asyncio.run(main()), 0)
        self.assertEqual(stats(scheduler).operations[0], 300)
        self.assertEqual(asyncio.run(main()), 0, "in another loop")

    def test_a_cancelled_task_cancels_its_request(self):
        scheduler = scheduler_of(200)
        queries = scheduler.add_class("queries", 1000)

        async def main():
            held = fill(queries)
            tasks = [asyncio.ensure_future(queries.admit_async("read", 4096)._wait()) for _ in range(50)]
            await asyncio.sleep(0)
            waiting = stats(scheduler).queued
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, forebay.Permit):
                    result.complete()
            for permit in held:
                permit.complete()
            return waiting

        self.assertGreater(asyncio.run(main()), 0)
        counted = stats(scheduler)
        self.assertEqual((counted.queued, counted.in_disk), (0, 0))

    def test_what_waits_in_a_loop_that_is_closed_gives_its_place_back(self):
        scheduler = scheduler_of(200)
        queries = scheduler.add_class("queries", 1000)
        held = fill(queries)
        loop = asyncio.new_event_loop()
        # of tasks that are never done
        loop.set_exception_handler(lambda *_: None)
        tasks = [loop.create_task(queries.admit_async("read", 1 << 20)._wait()) for _ in range(3)]
        loop.run_until_complete(asyncio.sleep(0))
        self.assertEqual(stats(scheduler).queued, 3)
        loop.close()
        del loop, tasks
        gc.collect()
        self.assertEqual(stats(scheduler).queued, 0)
        for permit in held:
            permit.complete()
        self.assertEqual(stats(scheduler).in_disk, 0)

    def test_a_refused_request_raises_in_its_task(self):
        queries = scheduler_of().add_class("queries", 1000)
        queries.remove()

        async def main():
            await queries.admit_async("read", 4096)

        with self.assertRaisesRegex(forebay.Error, "removed"):
            asyncio.run(main())


class Files(unittest.TestCase):
    def test_writes_reads_and_deletes(self):
        queries = scheduler_of().add_class("queries", 1000)
        data = bytes(range(256)) * 4000
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            with open(path, "w+b") as file:
                with queries.writer(file) as writer:
                    writer.write(data[:1000])
                    writer.write(bytearray(data[1000:]))
                    # none is the end, nor within the file
                    for offset in (-1, -4096, 1 << 63, (1 << 64) - 1, (1 << 64) + 5):
                        with self.assertRaises(ValueError):
                            writer.write(b"x", offset)
                    writer.sync()
                    self.assertEqual(writer.dirty, 0)
                queries.sync(file)
                queries.prefetch(file)
                queries.prefetch(file, 10, 100)
                with self.assertRaises(ValueError):
                    queries.prefetch(file, -1)
                self.assertEqual(queries.read(file, len(data) + 7, 0), data)
                self.assertEqual(queries.read(file, 10, len(data) - 4), data[-4:])
                self.assertEqual(queries.read(file, 0, 0), b"")
                with queries.on_file(file).admit("read", 4096):
                    pass
            queries.deleter(rate=1 << 30).delete(path).wait()
            self.assertFalse(os.path.exists(path))
            with self.assertRaises(forebay.Error) as raised:
                queries.deleter().delete(path).wait()
            self.assertEqual(raised.exception.errno, 2)


class Settings(unittest.TestCase):
    def test_shares_limits_groups_and_names(self):
        scheduler = scheduler_of(strict=True)
        group = scheduler.add_group("group", 300)
        within = group.add_group("deeper", 100).add_class("within", 200)
        within.shares = 250
        self.assertEqual((within.shares, group.shares), (250, 300))
        within.set_limits(operations_per_second=10)
        self.assertEqual(scheduler.find_class("within").shares, 250)
        for wrong in (
            lambda: scheduler.add_class("within", 1),
            lambda: scheduler.add_class("zero", 0),
            lambda: scheduler.find_class("nobody"),
            lambda: forebay.Scheduler.from_file("/nowhere.yaml"),
        ):
            self.assertRaises(forebay.Error, wrong)
        for wrong in (
            lambda: scheduler.add_class("many", (1 << 32) + 1),
            lambda: setattr(within, "shares", (1 << 32) + 1),
            lambda: within.set_limits(operations_per_second=(1 << 64) + 1),
            lambda: within.admit("read", (1 << 64) + 4096),
            lambda: scheduler_of((1 << 64) + 1),
        ):
            self.assertRaises(ValueError, wrong)
        self.assertRaises(ValueError, lambda: within.admit("reed", 4096))
        self.assertIn("# EOF", scheduler.open_metrics())
        self.assertEqual(scheduler.snapshot().bugs, 0)

    def test_long_names_are_whole_and_stay_apart(self):
        names = ["ä" * 100 + end for end in ("first", "second")]
        disk = forebay.Disk("d" * 100, 1000, 1000, 1_000_000, 1_000_000)
        scheduler = forebay.Scheduler.from_rates([disk])
        for name in names:
            scheduler.add_class(name, 100)
        classes = scheduler.snapshot().classes[disk.name]
        self.assertEqual(set(names) & set(classes), set(names))

    def test_a_closed_object_raises(self):
        queries = scheduler_of().add_class("queries", 1000)
        queries.close()
        for call in (queries.remove, lambda: queries.admit("read", 1), lambda: queries.try_admit("read", 1)):
            self.assertRaises(forebay.HandleError, call)


class Forks(unittest.TestCase):
    def test_in_a_child_every_call_raises_and_its_own_scheduler_works(self):
        scheduler = scheduler_of(200)
        queries = scheduler.add_class("queries", 1000)
        group = scheduler.add_group("group", 100)
        held = fill(queries)
        with self.assertRaises(forebay.TimedOut):
            queries.admit("read", 1 << 20, timeout=0.001)
        file = tempfile.TemporaryFile()
        writer = queries.writer(file)
        deleter = queries.deleter()
        deletion = deleter.delete("/nowhere/file")
        calls = [
            lambda: queries.admit("read", 4096),
            lambda: queries.try_admit("read", 4096),
            lambda: asyncio.run(queries.admit_async("read", 4096)._wait()),
            lambda: queries.on_file(file),
            lambda: queries.enter().__enter__(),
            lambda: queries.read(file, 10, 0),
            lambda: queries.prefetch(file),
            lambda: queries.sync(file),
            lambda: queries.writer(file),
            lambda: queries.deleter(),
            lambda: queries.shares,
            lambda: setattr(queries, "shares", 5),
            lambda: queries.set_limits(),
            queries.remove,
            lambda: group.add_class("new", 1),
            lambda: group.add_group("new", 1),
            lambda: writer.write(b"data"),
            writer.sync,
            lambda: writer.dirty,
            lambda: deleter.delete("/nowhere"),
            deletion.wait,
            held[0].complete,
            scheduler.snapshot,
            scheduler.open_metrics,
            lambda: scheduler.reload("/nowhere"),
            lambda: scheduler.add_class("new", 1),
            lambda: scheduler.find_class("queries"),
            scheduler.close,
        ]
        # Python 3.12 warns of threads that it did not start, such as those of the library.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            try:
                for call in calls:
                    self.assertRaises(forebay.HandleError, call)
                with scheduler_of().add_class("queries", 1).admit("read", 4096):
                    code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        for permit in held:
            permit.complete()
        with queries.admit("read", 4096):
            pass
        writer.close()
        file.close()


class Interpreter(unittest.TestCase):
    def test_exit_with_open_objects_prints_nothing(self):
        program = """
import threading, forebay
queries = forebay.Scheduler.from_rates([forebay.Disk("disk", 1, 1, 4096, 4096)]).add_class("queries", 1)
held = queries.try_admit("read", 1 << 20)
threading.Thread(target=lambda: queries.admit("read", 1 << 20), daemon=True).start()
"""
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))

    def test_import_errors_are_one_line(self):
        for library, version, said in (
            ("libc.so.6", "sys.version_info", "undefined symbol: forebay_"),
            ("/nowhere.so", "sys.version_info", "/nowhere.so: "),
            ("/nowhere.so", "(3, 8, 18)", "forebay needs Python 3.9 or newer, and this is 3.8"),
        ):
            program = f"import sys; sys.version_info = {version}; import forebay"
            environment = {**os.environ, "FOREBAY_LIBRARY": library}
            ended = subprocess.run(
                [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
            )
            self.assertEqual(ended.returncode, 1)
            self.assertRegex(ended.stderr.splitlines()[-1], f"^ImportError: .*{said}")


if __name__ == "__main__":
    unittest.main()
