"""The images of the lab's pods, as archives that containerd reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.labs.kubernetes.places import CACHE, HERE, container_variables

PAUSE = "localhost/pause:1"


def name_of(image: str) -> str:
    """Return the name under which containerd knows an image from podman's store.

    The name has the digits of the image's content, so that an image that was made anew is another one.
    """
    described = podman("image", "inspect", "--format", "{{.Id}}", image).strip()
    return f"{image}-{described.removeprefix('sha256:')[:12]}"


def make_archive(image: str) -> Path:
    """Write an image from podman's store into a file."""
    archive = CACHE / "archive.tar"
    archive.unlink(missing_ok=True)
    podman("save", "-q", "--format", "docker-archive", "-o", str(archive), image)
    return archive


def make_pause_image() -> str:
    """Build the image of the container that holds a pod's network."""
    if subprocess.run(["podman", "image", "exists", PAUSE], check=False, env=container_variables()).returncode:
        folder = CACHE / "pause"
        folder.mkdir(parents=True, exist_ok=True)
        build = ["go", "build", "-o", str(folder / "pause"), str(HERE / "pause.go")]
        subprocess.run(build, check=True, env={**container_variables(), "CGO_ENABLED": "0"})
        packing = subprocess.Popen(["tar", "-C", folder, "-c", "pause"], stdout=subprocess.PIPE)
        command = ["podman", "import", "--change", 'ENTRYPOINT=["/pause"]', "-", PAUSE]
        subprocess.run(command, stdin=packing.stdout, check=True, env=container_variables())
    return PAUSE


def podman(*arguments: str) -> str:
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, check=True, env=container_variables())
    return done.stdout
