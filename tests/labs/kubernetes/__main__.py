"""Starts a cluster for tries by hand, and ends it with Ctrl-C: python -m tests.labs.kubernetes FOLDER IMAGE..."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.labs.kubernetes.cluster import ISOLATION, Cluster, is_isolated
from tests.labs.kubernetes.images import make_pause_image


def main(folder: Path, images: list[str]) -> None:
    if not is_isolated():
        os.execvp(ISOLATION[0], [*ISOLATION, sys.executable, "-m", "tests.labs.kubernetes", *sys.argv[1:]])
    folder.mkdir(parents=True, exist_ok=True)
    with Cluster(folder, [make_pause_image(), *images]):
        print(f"ready: kubectl --kubeconfig={folder}/admin.conf get nodes", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
