"""A slot's end of a lifeline, alone in a process: connects to the driver, and answers it until that is gone.

python -m tests.nemesis.slot_end HOST PORT SILENCE
"""

import os
import sys
import threading

from penstock.spark.links.lifelines import Lifeline
from penstock.spark.links.links import Address, Tag, connect, limit_silence, send

SECRET = b"s" * 32


def main(host: str, port: str, silence: str) -> None:
    link = connect(Address("", "", host, int(port)), SECRET)
    limit_silence(link, float(silence))
    send(link, Tag(0, -1, -1), str(os.getpid()).encode())
    task, _held = os.pipe()
    Lifeline(link, task, float(silence))
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
