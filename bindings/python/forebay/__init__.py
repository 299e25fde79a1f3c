"""A userspace disk I/O scheduler: permits for reads and writes, shared between priority classes.

    scheduler = forebay.Scheduler.from_file("/etc/forebay.yaml")
    queries = scheduler.add_class("queries", 1000)
    with queries.admit("read", 4096):
        page = os.pread(fd, 4096, 0)
"""

import sys

# in syntax that older versions understand
if sys.version_info < (3, 9):
    raise ImportError("forebay needs Python 3.9 or newer, and this is %d.%d" % sys.version_info[:2])

from ._scheduler import *
from ._scheduler import __all__ as __all__
