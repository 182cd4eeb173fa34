"""The Spark application of a job's earlier driver, which may still hold the cores that the next driver needs.

The master of a standalone cluster notices only after minutes that the host of a driver has lost power. Until then, the
application of that driver keeps its cores. The next driver therefore ends that application.

Kubernetes deletes executors with the pod of their driver. A driver that dies alone, in the pod of a server, leaves pods
behind. The next driver deletes them.
"""

from __future__ import annotations

import json
import logging

from py4j.protocol import Py4JError
from pyspark import SparkContext

from penstock.spark.sessions.kubernetes import pod_client
from penstock.spark.sessions.session import java_gateway, scala_context

STANDALONE, KUBERNETES = "spark://", "k8s://"
log = logging.getLogger("penstock.job")


def application_of(context: SparkContext) -> bytes | None:
    """Return data with which a later driver can end this application; None if the cluster manager ends it itself."""
    if not context.master.startswith((STANDALONE, KUBERNETES)):
        return None
    return json.dumps({"master": context.master, "id": context.applicationId}).encode()


def end_application(context: SparkContext, described: bytes) -> None:
    """Ask the manager of this application to end an earlier one. Do nothing if that one was on another cluster."""
    earlier = json.loads(described)
    if earlier["master"] != context.master or earlier["id"] == context.applicationId:
        return
    if context.master.startswith(KUBERNETES):
        _delete_executors(earlier["id"])
        return
    for place in context.master.removeprefix(STANDALONE).split(","):
        try:
            _tell_master(context, place, earlier["id"])
        except (Py4JError, OSError, ValueError) as error:
            log.debug("application %s could not be ended at %s: %s", earlier["id"], place, error)
        else:
            log.info("asked application %s, of the previous driver, to end", earlier["id"])


def _delete_executors(application: str) -> None:
    """Delete what an application on Kubernetes has left in the namespace of this driver's pod."""
    client = pod_client()
    if client is None:
        return
    try:
        client.delete_executors(application)
    except OSError as error:
        log.debug("the executors of application %s could not be deleted: %s", application, error)
    else:
        log.info("deleted the executors of application %s, of the previous driver", application)


def _tell_master(context: SparkContext, place: str, application: str) -> None:
    """Send a master the message that an application itself sends at its end, over a new connection."""
    jvm = java_gateway().jvm
    settings, manager = scala_context(context).conf(), jvm.org.apache.spark.SecurityManager
    defaults = [getattr(manager, f"$lessinit$greater$default${number}")() for number in (2, 3)]
    own = context.getConf().get("spark.driver.host", "localhost")
    environment = jvm.org.apache.spark.rpc.RpcEnv
    connection = environment.create("penstock", own, 0, settings, manager(settings, *defaults), True)
    try:
        host, _, port = place.rpartition(":")
        address = jvm.org.apache.spark.rpc.RpcAddress(host, int(port))
        message = jvm.org.apache.spark.deploy.DeployMessages.UnregisterApplication(application)
        connection.setupEndpointRef(address, "Master").send(message)
        connection.setupEndpointRef(address, "Master")  # its answer comes after the message has arrived
    finally:
        connection.shutdown()
