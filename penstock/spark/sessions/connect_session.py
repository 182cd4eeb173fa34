"""Spark Connect: sessions whose Spark driver is a server, which this process reaches over gRPC."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from penstock.base.libraries import optional_library
from penstock.errors import ConfigurationError, UnsupportedOperation

SCHEME = "sc://"
REMOTE, REMOTE_VARIABLE = "spark.remote", "SPARK_REMOTE"
OLDEST_SERVER = (3, 5)
"""First version of Spark that starts barrier tasks for `mapInArrow`."""
OLDEST_WITH_STAGES = (4, 1)
"""First version of Spark that clones sessions and has `repartitionById`."""
OWN_ADDRESS = ("spark.driver.host", "spark.driver.bindAddress")
"""Options for the address of a job's driver, which is this process. The server is not asked to set them."""
DEPLOY_MODE, CLIENT_MODE, CLUSTER_MODE = "spark.submit.deployMode", "client", "cluster"
"""Spark's setting for the place of drivers, and its values. `cluster` runs a program in a task of the server."""
DRIVER_TASK = "PENSTOCK_DRIVER_TASK"
"""Environment variable of a program that runs in a task. The task occupies one core."""
_OTHERS = (REMOTE, "spark.master", "spark.app.name", DEPLOY_MODE, *OWN_ADDRESS)
log = logging.getLogger("penstock.job")


def is_connect(session: object) -> bool:
    """Return True if a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def active_connect_session() -> Any:
    """Return the Connect session of this process, whichever thread made it, or None."""
    module = sys.modules.get("pyspark.sql.connect.session")
    if module is None:
        return None
    kind = module.SparkSession
    return kind.getActiveSession() or kind._get_default_session()


def connect_session(url: str, app_name: str, options: Mapping[str, str], seconds: float) -> Any:
    """Create a session on the server at `url`, which must answer within this many seconds.

    Log a warning that names the options which the server does not let a session set.
    """
    if options.get(DEPLOY_MODE) == CLUSTER_MODE:
        raise ConfigurationError(
            f"{DEPLOY_MODE} is '{CLUSTER_MODE}', and this program runs here: start it with "
            f"`penstock run -m sc://… -D {DEPLOY_MODE}={CLUSTER_MODE}`, or set '{CLIENT_MODE}'"
        )
    _check_libraries()
    _await_server(url, seconds)
    from pyspark.sql import SparkSession

    try:
        session: Any = SparkSession.builder.remote(url).appName(app_name).getOrCreate()
        version = session.version
    except Exception as error:
        raise ConfigurationError(_refusal(url, error)) from None
    check_server(session, version)
    _set(session, options)
    return session


def check_server(session: Any, version: str | None = None) -> None:
    """Refuse a server that cannot start slots."""
    try:
        version = version or str(session.version)
    except Exception as error:
        raise ConfigurationError(_refusal(endpoint(session), error)) from None
    if _numbers(version) < OLDEST_SERVER:
        raise ConfigurationError(
            f"the Spark Connect server at {endpoint(session)} runs Spark {version}, and slots need Spark "
            f"{_text(OLDEST_SERVER)} or newer: use a newer server, or a master such as spark://host:7077"
        )


def endpoint(session: Any) -> str:
    """Return the host and port of a session's server, as far as its channel tells them."""
    builder = getattr(session.client, "_builder", None)
    return str(getattr(builder, "endpoint", None) or getattr(session.client, "host", None) or "its address")


def describe_error(error: Exception) -> str:
    """Return a server's text of an error, without the stack frames of its JVM."""
    return str(error).partition("JVM stacktrace:")[0]


def sibling(session: Any) -> Any:
    """Return a new session on the same server, to replace one that the server has forgotten."""
    fresh = type(session)(connection=session.client._builder)
    check_server(fresh)
    return close_at_exit(fresh)


def clone(session: Any) -> Any:
    """Return a new session on the same server, with the current options and artifacts of this one."""
    check_stages(session, "BATCH mode")
    return close_at_exit(session.cloneSession())


def close_at_exit(session: Any) -> Any:
    """Close a session before the interpreter ends, and return it. PySpark would close it later, and hang in gRPC."""
    close = session.client.close
    atexit.register(close)
    return session


def check_stages(session: Any, what: str) -> None:
    """Raise UnsupportedOperation if either side is too old for `what`, which needs `repartitionById`."""
    from pyspark import __version__

    server = str(session.version)  # the question also makes the session known to a new server
    if min(_numbers(server), _numbers(__version__)) < OLDEST_WITH_STAGES:
        raise UnsupportedOperation(
            f"{what} over Spark Connect needs Spark {_text(OLDEST_WITH_STAGES)} or newer on both sides: here is "
            f"{__version__}, and the server at {endpoint(session)} is {server}. Use a newer Spark, or a master "
            "such as spark://host:7077"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def parallelism_of(session: Any) -> int | None:
    """Return the number of cores, which is the number of partitions in the plan of a range; None if it is unknown."""
    try:
        splits = re.search(r"splits=Some\((\d+)\)|splits=(\d+)", session.range(1)._explain_string())
    except Exception:
        return None  # the next use of the session shows what is wrong
    return None if splits is None else int(splits[1] or splits[2])


def remote_url(options: Mapping[str, str]) -> str | None:
    """Return the server that `spark.remote`, else SPARK_REMOTE, names, or None."""
    return options.get(REMOTE) or os.environ.get(REMOTE_VARIABLE)


def check_no_remote(master: str, options: Mapping[str, str]) -> None:
    """Refuse a classic master beside a setting with which Spark would make a session of Spark Connect."""
    url = remote_url(options)
    if url is not None:
        name = REMOTE if options.get(REMOTE) else f"the environment's {REMOTE_VARIABLE}"
        raise ConfigurationError(
            f"{name} is '{url}', and the master is '{master}': unset one of them. For Spark Connect, the master can be "
            "the URL of a server, such as sc://host:15002"
        )


def _check_libraries() -> None:
    for name in ("grpc", "grpc_status", "google.rpc", "pandas", "pyarrow", "zstandard"):
        optional_library(name, "Spark Connect needs more packages", "connect")


def _await_server(url: str, seconds: float) -> None:
    """Wait for a channel to the server. Spark's own client would try for ten minutes."""
    import grpc

    try:
        channel = _channel(url)
    except Exception as error:
        raise ConfigurationError(f"'{url}' is not an address of a Spark Connect server: {_first_line(error)}") from None
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds)
    except grpc.FutureTimeoutError:
        raise ConfigurationError(
            f"no Spark Connect server answers at '{hidden(url)}' within {seconds:g} s: check that the server "
            "runs, that the host and the port (15002 unless set) are right, and that both sides use TLS (;use_ssl=true)"
        ) from None
    finally:
        channel.close()


def _channel(url: str) -> Any:
    return channel_builder(url).toChannel()


def channel_builder(url: str) -> Any:
    """Return Spark's own interpretation of a URL: host, port, TLS, and the metadata of each request."""
    from pyspark.sql.connect import client

    builder: Callable[[str], Any] = getattr(client, "DefaultChannelBuilder", None) or client.ChannelBuilder
    return builder(url)


def uses_tls(url: str) -> bool:
    """Return True if Spark's client encrypts connections to a URL. A token implies TLS, except for localhost."""
    builder = channel_builder(url)
    return "use_ssl=true" in url.lower() or (builder.secure and not builder.endpoint.startswith("localhost:"))


def hidden(url: str) -> str:
    """Return a URL without its token."""
    return re.sub(r"((?:token|authorization)=)[^;]*", r"\1***", url)


def _refusal(url: str, error: Exception) -> str:
    text = str(error)
    if "UNAUTHENTICATED" in text or "PERMISSION_DENIED" in text or "Invalid authentication" in text:
        return (
            f"the Spark Connect server at '{hidden(url)}' rejects the token: give the right token as ;token=… in the "
            "URL, or in the environment's SPARK_CONNECT_AUTHENTICATE_TOKEN"
        )
    if "UNIMPLEMENTED" in text:
        return f"the process at '{hidden(url)}' is not a Spark Connect server, or has another version: {text[:200]}"
    return f"the Spark Connect server at '{hidden(url)}' refused a session: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    details = next((line for line in lines if line.startswith("details =")), None)
    return (details or next(iter(lines), type(error).__name__))[:300]


def _set(session: Any, options: Mapping[str, str]) -> None:
    """Set the options that a session may set, and log the names of the others."""
    refused = []
    for name, value in options.items():
        if name in _OTHERS or name.startswith("spark.penstock."):
            continue
        try:
            session.conf.set(name, value)
        except Exception:
            refused.append(name)
    if refused:
        log.warning(
            "%s cannot be set on a session of Spark Connect, and the server at %s keeps the values with which it "
            "was started: set these options for the server (spark-submit --conf)",
            ", ".join(sorted(refused)),
            endpoint(session),
        )
