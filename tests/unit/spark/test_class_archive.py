"""The archive of Java's classes: which options a JVM gets, and what becomes of files in the folder."""

import os
import time
from pathlib import Path

import pytest

from penstock.spark.sessions import class_archive
from penstock.spark.sessions.class_archive import Jvm, approve, cache_folder, discard, is_about_archive, java_options

HEADER = b"\xa8\xab\x0b\xf0"


@pytest.fixture
def jvm(tmp_path: Path) -> Jvm:
    (tmp_path / "spark/jars").mkdir(parents=True)
    (tmp_path / "spark/jars/spark-core_2.13-4.1.0.jar").touch()
    return Jvm("/usr/bin/java", 'openjdk version "17.0.15"', tmp_path / "spark", tmp_path / "spark/conf", {})


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PENSTOCK_CACHE_DIR": str(tmp_path / "cache")}


def draft_of(options: str) -> Path:
    return Path(options.partition("-XX:ArchiveClassesAtExit=")[2].partition(" ")[0])


def write(jvm: Jvm, environment: dict[str, str], content: bytes = HEADER) -> Path:
    """What a JVM does that has run Spark."""
    options = java_options(jvm, environment)
    approve(options)
    draft_of(options).write_bytes(content)
    return draft_of(options)


def test_the_first_jvm_writes_an_archive_and_the_next_one_uses_it(jvm: Jvm, environment: dict[str, str]) -> None:
    draft = write(jvm, environment, HEADER + b"classes")
    options = java_options(jvm, environment)
    archive = draft.parent / f"{jvm.key()}-11.jsa"
    assert options.startswith(f"-XX:SharedArchiveFile={archive} -Xshare:auto")
    assert archive.read_bytes() == HEADER + b"classes"
    assert list(draft.parent.iterdir()) == [archive]
    assert java_options(jvm, environment) == options


def test_one_jvm_at_a_time_writes_an_archive(jvm: Jvm, environment: dict[str, str]) -> None:
    draft = draft_of(java_options(jvm, environment))
    assert java_options(jvm, environment) == ""
    claim = draft.parent / f"{jvm.key()}.claim"
    os.utime(claim, (time.time() - 3600,) * 2)
    assert draft_of(java_options(jvm, environment)) == draft


def test_an_archive_without_its_header_is_not_used(jvm: Jvm, environment: dict[str, str]) -> None:
    draft = write(jvm, environment, bytes(4) + b"classes")
    assert java_options(jvm, environment) == ""
    os.utime(draft, (time.time() - 3600,) * 2)
    assert java_options(jvm, environment) != ""
    assert not draft.exists()


def test_what_a_jvm_wrote_that_did_not_run_spark_is_not_used(jvm: Jvm, environment: dict[str, str]) -> None:
    draft = draft_of(java_options(jvm, environment))
    draft.write_bytes(HEADER)
    assert draft_of(java_options(jvm, environment)) == draft
    assert not draft.exists()


def test_a_part_of_an_archive_is_deleted(jvm: Jvm, environment: dict[str, str]) -> None:
    draft = write(jvm, environment, HEADER + b"classes")
    java_options(jvm, environment)
    (archive,) = draft.parent.glob("*.jsa")
    archive.chmod(0o600)
    archive.write_bytes(HEADER)
    assert java_options(jvm, environment).startswith("-XX:ArchiveClassesAtExit=")
    assert not archive.exists()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PENSTOCK_CACHE_DIR", ""),
        ("JDK_JAVA_OPTIONS", "-Xshare:off"),
        ("SPARK_SUBMIT_OPTS", "-javaagent:profiler.jar"),
        ("HADOOP_CONF_DIR", "/etc/hadoop"),
    ],
)
def test_what_a_user_has_set_prevents_an_archive(
    jvm: Jvm, environment: dict[str, str], variable: str, value: str
) -> None:
    assert java_options(jvm, environment) != ""
    assert java_options(jvm, environment | {variable: value}) == ""


def test_settings_and_files_of_spark_prevent_an_archive(jvm: Jvm, environment: dict[str, str]) -> None:
    for name, value in (("extraClassPath", "/x"), ("extraJavaOptions", "-XX:SharedArchiveFile=/x")):
        own = Jvm(jvm.java, jvm.version, jvm.spark_home, jvm.configuration, {f"spark.driver.{name}": value})
        assert java_options(own, environment) == ""
    jvm.configuration.mkdir()
    assert java_options(jvm, environment) != ""
    (jvm.configuration / "spark-defaults.conf").touch()
    assert java_options(jvm, environment) == ""


def test_another_java_and_another_spark_have_archives_of_their_own(jvm: Jvm) -> None:
    assert Jvm(jvm.java, "21", jvm.spark_home, jvm.configuration, {}).key() != jvm.key()
    before = jvm.key()
    (jvm.spark_home / "jars/spark-core_2.13-4.2.0.jar").touch()
    assert jvm.key() != before


def test_only_the_archives_that_were_used_last_are_kept(
    jvm: Jvm, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "_KEPT", 2)
    versions = [Jvm(jvm.java, str(version), jvm.spark_home, jvm.configuration, {}) for version in range(3)]
    for version in versions:
        write(version, environment)
        java_options(version, environment)
        time.sleep(0.02)  # the times of files tell which one is older
    folder = cache_folder(environment)
    assert folder is not None
    assert {file.name for file in folder.glob("*.jsa")} == {f"{version.key()}-4.jsa" for version in versions[1:]}


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, jvm: Jvm) -> None:
    tmp_path.chmod(0o777)
    assert java_options(jvm, {"PENSTOCK_CACHE_DIR": str(tmp_path)}) == ""


def test_an_archive_that_a_jvm_did_not_start_with_is_discarded(tmp_path: Path) -> None:
    archive = tmp_path / "a.jsa"
    archive.touch()
    discard(f"-XX:SharedArchiveFile={archive} -Xshare:auto")
    assert not archive.exists()
    assert is_about_archive("Spark's JVM did not start: # A fatal error has been detected by the Java Runtime")
    assert is_about_archive("DynamicDumpSharedSpaces is unsupported when base CDS archive is not loaded")
    assert not is_about_archive("Invalid maximum heap size: -Xmxnonsense")
