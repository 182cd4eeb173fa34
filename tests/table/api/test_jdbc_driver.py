"""Flink's JDBC driver, in a JVM, finds in the gateway what it expects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from penstock.service.gateway.gateway_server import serve_gateway
from penstock.testing import in_process
from tests.services.maven import jars

DRIVER = "org.apache.flink:flink-sql-jdbc-driver-bundle:2.3.0"
pytestmark = [pytest.mark.soak, pytest.mark.service]


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    driver = next(jars("flink-jdbc-2.3.0", DRIVER).glob("flink-sql-jdbc-driver-bundle-*.jar"))
    bridge, logs = (next((Path(pyspark.__file__).parent / "jars").glob(name)) for name in ("py4j-*.jar", "slf4j-api-*"))
    path = f"{driver}{os.pathsep}{logs}"
    port, token = launch_gateway(jarpath=str(bridge), classpath=path, die_on_exit=True, enable_auth=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    yield gateway.jvm
    gateway.shutdown()


@pytest.fixture
def connection(jvm: Any) -> Iterator[Any]:
    with in_process(), serve_gateway({"sql-gateway.endpoint.rest.port": "0"}) as url:
        driver = jvm.org.apache.flink.table.jdbc.FlinkDriver()
        made = driver.connect(f"jdbc:flink://{url.removeprefix('http://')}", jvm.java.util.Properties())
        yield made
        made.close()


def rows(result: Any) -> list[tuple[Any, ...]]:
    width = result.getMetaData().getColumnCount()
    found = []
    while result.next():
        found.append(tuple(result.getObject(index + 1) for index in range(width)))
    return found


def test_queries_and_their_results(connection):
    statement = connection.createStatement()
    statement.execute("SET 'execution.runtime-mode' = 'batch'")
    result = statement.executeQuery(
        "SELECT n, s, d, TIMESTAMP '2024-01-31 10:00:00' AS ts FROM "
        "(VALUES (1, 'a', CAST(1.5 AS DECIMAL(5, 2))), (2, 'b', NULL)) AS t(n, s, d) ORDER BY n"
    )
    described = result.getMetaData()
    assert [described.getColumnName(index + 1) for index in range(4)] == ["n", "s", "d", "ts"]
    assert result.next() and (result.getInt("n"), result.getString(2)) == (1, "a")
    assert float(str(result.getBigDecimal("d"))) == 1.5 and str(result.getTimestamp("ts")) == "2024-01-31 10:00:00.0"
    assert result.next() and (result.getInt(1), result.getObject("d")) == (2, None)
    assert not result.next()


def test_tables_are_made_filled_and_listed(connection, tmp_path):
    statement = connection.createStatement()
    statement.execute("SET 'execution.runtime-mode' = 'batch'")
    statement.execute("SET 'table.dml-sync' = 'true'")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    assert not statement.execute(f"CREATE TABLE t (id BIGINT, name STRING) WITH ({options})")
    statement.execute("INSERT INTO t VALUES (1, 'ann'), (2, 'bob')")
    assert sorted(rows(statement.executeQuery("SELECT * FROM t"))) == [(1, "ann"), (2, "bob")]
    assert statement.execute("SHOW TABLES") and rows(statement.getResultSet()) == [("t",)]


def test_what_there_is(connection):
    connection.createStatement().execute("CREATE TABLE t (id BIGINT, name STRING) WITH ('connector' = 'datagen')")
    described = connection.getMetaData()
    assert described.getDatabaseProductVersion() == "2.3.0"
    assert rows(described.getCatalogs()) == [("default_catalog",)]
    assert [row[0] for row in rows(described.getSchemas())] == ["default_database"]
    assert connection.getCatalog() == "default_catalog" and connection.getSchema() == "default_database"


def test_an_error_says_what_is_wrong(connection):
    with pytest.raises(Exception, match=r"did you mean|not found"):
        connection.createStatement().executeQuery("SELECT * FROM nothing")
