"""A stand-in for Python's official image, for machines that reach Debian's packages and no registry.

python -m tests.labs.kubernetes.base_image IMAGE

It has what python:VERSION-slim-bookworm has: Debian's smallest system, and a Python below /usr/local. The Python comes
from this machine: from pyenv, or from the prefix in PENSTOCK_LAB_PYTHON.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.labs.kubernetes.places import CACHE, container_variables

SYSTEM = ("ca-certificates", "netbase", "tzdata")
LIBRARIES = ("libssl3", "libffi8", "libsqlite3-0", "libbz2-1.0", "liblzma5", "libreadline8", "zlib1g", "libncursesw6")
MORE_LIBRARIES = ("libexpat1", "libuuid1", "libgdbm6", "libdb5.3")
SOURCES = "/etc/apt/sources.list.d/debian.sources"
LEFT_OUT = ("doc", "info", "lintian", "locale", "man")
SETTINGS = ("PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8")
TRUST = "ENV=NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"
PIP = "#!/usr/local/bin/python3\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"


def make_base_image(image: str) -> None:
    """Make the image unless the store has it or a registry gives it out."""
    if run("podman", "image", "exists", image, check=False) or run("podman", "pull", "-q", image, check=False):
        return
    (version,) = re.findall(r"python:(\d+\.\d+)", image)
    root = CACHE / "root"
    if not (root / "etc/passwd").exists():
        make_root(root)
    add_python(root, version)
    changes = ["--change", TRUST, *(word for setting in SETTINGS for word in ("--change", f"ENV={setting}"))]
    packing = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
    command = ["podman", "import", *changes, "--change", 'CMD=["python3"]', "-", image]
    subprocess.run(command, stdin=packing.stdout, check=True, env=container_variables())


def make_root(root: Path) -> None:
    """Install Debian's smallest system into a folder, without what official slim images leave out."""
    run("debootstrap", "--variant=minbase", f"--include={','.join(SYSTEM)}", "bookworm", str(root))
    excluded = "".join(f"path-exclude /usr/share/{name}/*\n" for name in LEFT_OUT)
    (root / "etc/dpkg/dpkg.cfg.d/docker").write_text(excluded + "path-include /usr/share/doc/*/copyright\n")
    for name in ("info", "locale", "man", "doc"):
        for path in (root / "usr/share" / name).glob("*"):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for section in range(1, 9):  # some packages fail without them
        (root / f"usr/share/man/man{section}").mkdir(parents=True)
    bring_certificates(root)
    inside(root, "apt-get", "update", "-q")
    inside(root, "apt-get", "install", "-qy", "--no-install-recommends", *LIBRARIES, *MORE_LIBRARIES)
    for path in (*(root / "var/lib/apt/lists").glob("*"), *(root / "var/cache/apt/archives").glob("*.deb")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def bring_certificates(root: Path) -> None:
    """Let the image trust what this machine trusts, and take its packages from the same places."""
    for path in Path("/usr/local/share/ca-certificates").glob("*.crt"):
        shutil.copy(path, root / "usr/local/share/ca-certificates")
    inside(root, "update-ca-certificates")
    for name in ("resolv.conf", "pip.conf"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), root / "etc" / name)
    if Path(SOURCES).exists():
        (root / "etc/apt/sources.list").unlink(missing_ok=True)
        shutil.copy(SOURCES, root / SOURCES.lstrip("/"))


def add_python(root: Path, version: str) -> None:
    """Copy a Python of this version into the folder."""
    prefix = next((path for path in prefixes(version) if (path / f"bin/python{version}").exists()), None)
    if prefix is None:
        sys.exit(f"no Python {version} is there for the image: set PENSTOCK_LAB_PYTHON to the prefix of one")
    library = root / f"usr/local/lib/python{version}"
    if library.exists():
        return
    shutil.copytree(prefix / f"lib/python{version}", library, symlinks=True,
                    ignore=shutil.ignore_patterns("test", "__pycache__", "site-packages", "config-*"))  # fmt: skip
    for package in (prefix / f"lib/python{version}/site-packages").glob("pip*"):
        shutil.copytree(package, library / "site-packages" / package.name)
    for path in (prefix / "lib").glob("libpython*"):
        shutil.copy(path, root / "usr/local/lib", follow_symlinks=False)
    binaries = root / "usr/local/bin"
    shutil.copy(prefix / f"bin/python{version}", binaries)
    for name in ("python3", "python"):
        (binaries / name).unlink(missing_ok=True)
        (binaries / name).symlink_to(f"python{version}")
    (binaries / "pip").write_text(PIP)
    (binaries / "pip").chmod(0o755)
    inside(root, "ldconfig")
    inside(root, "/usr/local/bin/python3", "-c", "import ssl, sqlite3, ctypes, lzma, bz2")


def prefixes(version: str) -> list[Path]:
    """The folders below which a Python may be, the named one first."""
    named = os.environ.get("PENSTOCK_LAB_PYTHON")
    return [*([Path(named)] if named else []), *sorted(Path.home().glob(f".pyenv/versions/{version}.*"))]


def inside(root: Path, *command: str) -> None:
    subprocess.run(["chroot", root, *command], check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def run(*command: str, check: bool = True) -> bool:
    """Run a command; tell whether it succeeded."""
    quiet = None if check else subprocess.DEVNULL
    return subprocess.run(command, check=check, env=container_variables(), stdout=quiet, stderr=quiet).returncode == 0


if __name__ == "__main__":
    make_base_image(sys.argv[1])
