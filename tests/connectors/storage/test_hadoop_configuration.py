"""Which name nodes a URL means, by Hadoop's own configuration files."""

import subprocess
import sys

import pytest

from penstock.base.hdfs.hadoop_configuration import HadoopConfiguration
from penstock.base.storage import Storage
from penstock.errors import ConfigurationError


@pytest.fixture
def configured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("HADOOP_HOME", raising=False)

    def write(name, **settings):
        lines = "".join(
            f"<property><name>{key.replace('__', '-').replace('_', '.')}</name><value>{value}</value></property>"
            for key, value in settings.items()
        )
        (tmp_path / name).write_text(f"<configuration>{lines}</configuration>")

    return write


def test_a_url_with_a_host_needs_no_configuration(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    configuration = HadoopConfiguration()
    assert configuration.addresses("hdfs", "node:8020") == ["http://node:9870"]
    assert configuration.addresses("webhdfs", "node:1234") == ["http://node:1234"]
    assert configuration.addresses("swebhdfs", "node") == ["https://node:9871"]
    assert not configuration.asks_kerberos


def test_the_address_of_the_configuration_counts_but_not_one_to_bind_to(configured):
    configured("hdfs-site.xml", dfs_namenode_http__address="0.0.0.0:50070")
    assert HadoopConfiguration().addresses("hdfs", "node:8020") == ["http://node:50070"]
    configured("hdfs-site.xml", dfs_namenode_http__address="web:50070", dfs_http_policy="HTTPS_ONLY")
    assert HadoopConfiguration().addresses("hdfs", "node:8020") == ["https://node:9871"]


def test_a_name_service_has_all_of_its_name_nodes(configured):
    configured("core-site.xml", fs_defaultFS="hdfs://Lake", hadoop_security_authentication="KERBEROS")
    configured(
        "hdfs-site.xml",
        dfs_ha_namenodes_Lake="one, two",
        dfs_namenode_http__address_Lake_one="a:9870",
        dfs_namenode_http__address_Lake_two="b:9870",
    )
    configuration = HadoopConfiguration()
    for scheme, authority in (("hdfs", "Lake"), ("hdfs", ""), ("webhdfs", "Lake")):
        assert configuration.addresses(scheme, authority) == ["http://a:9870", "http://b:9870"]
    assert configuration.asks_kerberos


def test_a_url_without_a_host_needs_a_default(configured):
    configured("core-site.xml", fs_defaultFS="s3a://bucket")
    with pytest.raises(ConfigurationError, match=r"fs.defaultFS in core-site.xml is 's3a://bucket'.*HADOOP_CONF_DIR"):
        HadoopConfiguration().addresses("hdfs", "")


def test_a_broken_file_is_named(configured, tmp_path):
    (tmp_path / "core-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigurationError, match=r"core-site.xml' of the Hadoop configuration is not valid XML"):
        HadoopConfiguration()


def test_a_name_node_that_does_not_answer(configured):
    configured("hdfs-site.xml", dfs_client_failover_max_attempts="1")  # what is configured counts
    storage, other = Storage("hdfs://127.0.0.1:9/x"), Storage("hdfs://127.0.0.1:9/y")
    assert storage.fs is other.fs
    with pytest.raises(OSError, match="Connection refused"):
        storage.fs.exists("/x/f")


FORK = """
import os
from penstock.base.hdfs.hadoop_configuration import HadoopConfiguration
from penstock.base.hdfs.native import NativeHdfs

NativeHdfs("hdfs", "localhost:1", HadoopConfiguration())
child = os.fork()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_does_not_wait_for_threads_of_a_client():
    """Spark's start forks the driver, in which fsspec forgets its file systems at once."""
    ended = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=300, check=True)
    assert ended.stdout == "7\n"


ENDING = """
import sys, threading, time
from penstock.base.hdfs.hadoop_configuration import HadoopConfiguration
from penstock.base.hdfs import native

native.PATIENCE = dict.fromkeys(native.PATIENCE, "0")

def ask():
    hdfs = native.NativeHdfs("hdfs", "localhost:1", HadoopConfiguration())
    while True:
        try:
            hdfs.exists("/file")
        except OSError as error:
            refused.set()

refused = threading.Event()
for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
assert refused.wait(60)
"""


def test_a_process_ends_well_while_daemon_threads_use_the_client():
    """Python would end them in the code of the client, which aborts the process with SIGABRT."""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=300, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("authority", "expected"),
    [
        ("node.example", "node.example:8020"),
        ("node.example:9000", "node.example:9000"),
        ("lake", "lake"),
        ("", "default.example:8020"),
    ],
)
def test_a_name_node_without_a_port_has_hadoops_default(tmp_path, monkeypatch, authority, expected):
    settings = {"fs.defaultFS": "hdfs://default.example", "dfs.ha.namenodes.lake": "one,two"}
    properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    (tmp_path / "core-site.xml").write_text(f"<configuration>{properties}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert HadoopConfiguration().with_port(authority) == expected
