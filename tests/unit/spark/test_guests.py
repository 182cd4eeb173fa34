"""A process in which a program was a guest is as it was before."""

import gc
import os
import sys

from penstock import compat
from penstock.spark.slots.guests import as_guest


def test_everything_is_changed_back(tmp_path):
    (tmp_path / "guests_own.py").write_text("value = 1")
    before = list(sys.path), os.getcwd(), dict(os.environ), gc.get_threshold(), compat.is_installed()
    with as_guest():
        sys.path.append(str(tmp_path))
        import guests_own

        assert guests_own.value == 1
        os.chdir(tmp_path)
        os.environ["GUESTS_OWN"] = "1"
        os.environ.pop("PATH")
        gc.set_threshold(9, 9, 9)
        compat.install()
        sys.modules["__main__"].Guest = int
    assert (list(sys.path), os.getcwd(), dict(os.environ), gc.get_threshold(), compat.is_installed()) == before
    assert "guests_own" not in sys.modules and not hasattr(sys.modules["__main__"], "Guest")


def test_another_version_of_a_module_can_be_a_guest_later(tmp_path):
    seen = []
    for version in (1, 2):
        folder = tmp_path / str(version)
        folder.mkdir()
        (folder / "guests_version.py").write_text(f"value = {version}")
        with as_guest():
            sys.path.append(str(folder))
            import guests_version

            seen.append(guests_version.value)
    assert seen == [1, 2]


def test_packages_that_are_installed_stay():
    with as_guest():
        import colorsys
    assert sys.modules["colorsys"] is colorsys
