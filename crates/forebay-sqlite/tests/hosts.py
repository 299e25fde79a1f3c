"""The extension in hosts that SQLite's shell does not stand for: hosts.py EXTENSION DIRECTORY, whose disk has an entry."""
import ctypes
import os
import subprocess
import sys

extension, directory = sys.argv[1:3]
sqlite = ctypes.CDLL("libsqlite3.so.0")
init = ctypes.CDLL(extension).sqlite3_extension_init
EXRESCODE, URI, READWRITE, CREATE = 0x02000000, 0x40, 2, 4


def run(path, sql="CREATE TABLE IF NOT EXISTS t(v); INSERT INTO t VALUES(randomblob(10000))"):
    """What goes wrong with a connection, if something does."""
    db, flags = ctypes.c_void_p(), READWRITE | CREATE | URI | EXRESCODE
    code = sqlite.sqlite3_open_v2(path.encode(), ctypes.byref(db), flags, None)
    code = code or sqlite.sqlite3_exec(db, sql.encode(), None, None, None)
    sqlite.sqlite3_close(db)
    return code


def said(*arguments, **environment):
    """What this program prints with these arguments in a process of its own."""
    command = [sys.executable, *sys.argv[:3], *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=60)


assert init(None, None, None) == 1, "without routines"
later = []


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_void_p)
def second(db, error, routines):
    if not later:
        # another SQLite of the process has its routines elsewhere
        copy = ctypes.create_string_buffer(ctypes.string_at(routines, 1600))
        init.argtypes = [ctypes.c_void_p] * 3
        message = ctypes.c_char_p()
        later.append((init(db, ctypes.addressof(message), ctypes.addressof(copy)), message.value))
    return 0


sqlite.sqlite3_auto_extension(init)
sqlite.sqlite3_auto_extension(second)
# the connection that loads it has its VFS already
code = run(":memory:") or run(sys.argv[3] if len(sys.argv) > 3 else f"file:{directory}/hosts.db?forebay_class=backup")
if len(sys.argv) > 3:
    sys.exit(code)
assert code == 0, code
assert later[0][0] == 1 and b"another SQLite" in later[0][1], later

# a forked child has no scheduler: it runs, and its classes are not known
child = os.fork()
if child == 0:
    path = f"{directory}/hosts.db"
    os._exit(run(f"file:{path}?forebay_class=backup") or run(path, "PRAGMA forebay_class = backup"))
assert os.waitpid(child, 0)[1] == 0

# one warning for a disk without an entry, and with strict an error
memory = f"/dev/shm/forebay-{os.getpid()}.db"
for strict, code in (("0", 0), ("1", 14)):
    done = said(memory, FOREBAY_STRICT=strict)
    assert done.returncode == code and done.stderr.count("is in no entry") == 1, done
os.remove(memory)
for name, value in (("FOREBAY_STRICT", "yes"), ("FOREBAY_CLASSES", "=3"), ("FOREBAY_PROPERTIES", "/none")):
    assert said(memory, **{name: value}).returncode == 1 and not os.path.exists(memory), name
done = said(f"file:{directory}/hosts.db?forebay_class=none")
assert done.returncode == 14 and "unknown class `none`; the classes are untagged, queries" in done.stderr, done
