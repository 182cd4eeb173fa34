"""The delegation tokens of HDFS that Spark obtains and renews for an application on a cluster with Kerberos."""

from __future__ import annotations

from py4j.protocol import Py4JError

from penstock.spark.sessions.session import java_gateway

KIND = "HDFS_DELEGATION_TOKEN"


def delegation_tokens() -> bytes:
    """Return the current tokens in the format of Hadoop's token files, or no bytes if there are none.

    Spark gives new tokens to the JVMs of its executors, from which a slot cannot get them.
    """
    gateway = java_gateway()
    if gateway is None:
        return b""
    try:
        return _tokens(gateway.jvm)
    except (Py4JError, OSError):  # the JVM is gone, and the attempt notices that by itself
        return b""


def _tokens(jvm: object) -> bytes:
    security = jvm.org.apache.hadoop.security  # type: ignore[attr-defined]
    if not security.UserGroupInformation.isSecurityEnabled():
        return b""
    chosen = security.Credentials()
    for token in security.UserGroupInformation.getCurrentUser().getCredentials().getAllTokens().toArray():
        if token.getKind().toString() == KIND:
            chosen.addToken(token.getService(), token)
    if chosen.numberOfTokens() == 0:
        return b""
    data = jvm.java.io.ByteArrayOutputStream()  # type: ignore[attr-defined]
    chosen.writeTokenStorageToStream(jvm.java.io.DataOutputStream(data))  # type: ignore[attr-defined]
    return bytes(data.toByteArray())
