"""Builds the image with the builder that is there: python -m tests.labs.kubernetes.build_image IMAGE"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tests.labs.kubernetes.places import CHOSEN_ENGINE, ROOT, container_variables

BUILDERS = {"buildah": ("bud", "--layers"), "podman": ("build",), "docker": ("build",)}
ENGINES = {"buildah": "podman", "podman": "podman", "docker": "docker"}
"""By builder: the engine that can run what it builds."""


def main(image: str, in_lab: bool) -> None:
    usable = (name for name in BUILDERS if CHOSEN_ENGINE in ("", ENGINES[name]))
    builder = next((name for name in usable if shutil.which(name)), None)
    if builder is None:
        sys.exit("no builder of images is there: install podman, buildah or docker")
    command = [builder, *BUILDERS[builder], "-f", "deployment/Dockerfile", "-t", image, "."]
    variables = container_variables() if in_lab else dict(os.environ)
    subprocess.run(command, cwd=ROOT, env=variables, check=True)


if __name__ == "__main__":
    main(sys.argv[1], in_lab="--lab" in sys.argv)
