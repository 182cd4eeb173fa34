"""What a driver reads from Kubernetes: settings that its pod gives, and why pods of executors do not start."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.spark.sessions.kubernetes import PodClient, driver_settings, pod_client, pods_obstacle
from penstock.spark.sessions.obstacles import Resources

MASTER = "k8s://https://kubernetes.default.svc"
IN_POD = {"HOSTNAME": "driver-1"}
DRIVER = {
    "metadata": {"name": "driver-1"},
    "spec": {"containers": [{"name": "main", "image": "shop/penstock:1"}, {"name": "proxy", "image": "proxy:2"}]},
    "status": {"podIP": "10.1.2.3"},
}


def executor(waiting=None, condition=None):
    state = {"containerStatuses": [{"image": "shop/x:1", "state": {"waiting": waiting}}]} if waiting else {}
    return {"metadata": {"name": "e-1"}, "status": {**state, "conditions": [condition] if condition else []}}


@pytest.fixture
def api(tmp_path):
    """An API server that gives out one list of pods; `answers` holds what it says to each path."""
    answers, asked = {}, []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Authorization"]))
            said = answers.get(self.path.partition("?")[0])
            self.send_response(200 if said is not None else 403)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def do_DELETE(self):
            asked.append((f"DELETE {self.path}", self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "token").write_text("secret")
    (tmp_path / "namespace").write_text("shop\n")
    client = PodClient(f"http://127.0.0.1:{server.server_port}", tmp_path)
    client.answers, client.asked = answers, asked
    yield client
    server.shutdown()
    server.server_close()


def test_a_driver_in_a_pod_knows_where_it_is(api):
    api.answers["/api/v1/namespaces/shop/pods/driver-1"] = DRIVER
    assert driver_settings(MASTER, {}, api, IN_POD) == {
        "spark.kubernetes.namespace": "shop",
        "spark.kubernetes.driver.pod.name": "driver-1",
        "spark.driver.host": "10.1.2.3",
        "spark.kubernetes.container.image": "shop/penstock:1",
    }
    assert api.asked == [("/api/v1/namespaces/shop/pods/driver-1", "Bearer secret")]


def test_the_image_is_that_of_the_main_container(api):
    annotated = {**DRIVER, "metadata": {"annotations": {"kubectl.kubernetes.io/default-container": "proxy"}}}
    api.answers["/api/v1/namespaces/shop/pods/driver-1"] = annotated
    assert driver_settings(MASTER, {}, api, IN_POD)["spark.kubernetes.container.image"] == "proxy:2"


def test_elsewhere_nothing_is_known(api, tmp_path):
    assert driver_settings("spark://m:7077", {}, api, IN_POD) == {}
    assert driver_settings(MASTER, {}, None, IN_POD) == {}
    assert pod_client({}, tmp_path) is None
    assert pod_client({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path / "none") is None


def test_executors_of_another_namespace_do_not_belong_to_the_pod(api):
    found = driver_settings(MASTER, {"spark.kubernetes.namespace": "other"}, api, IN_POD)
    assert found == {"spark.kubernetes.namespace": "shop"} and api.asked == []


def test_an_account_that_may_not_read_pods_is_warned_of(api, caplog):
    assert driver_settings(MASTER, {}, api, IN_POD) == {"spark.kubernetes.namespace": "shop"}
    assert "the pod of the driver, 'driver-1', cannot be read" in caplog.text


def test_executors_do_not_look_for_a_driver_at_every_address():
    found = driver_settings(MASTER, {"spark.driver.bindAddress": "0.0.0.0"}, None, {})
    assert found == {"spark.kubernetes.executor.useDriverPodIP": "false"}
    assert driver_settings(MASTER, {"spark.driver.bindAddress": "10.1.2.3"}, None, {}) == {}


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        ([], "Spark has not created any executor pods"),
        (
            [executor({"reason": "ImagePullBackOff", "message": "no such host"})],
            "the image 'shop/x:1' of pod e-1 cannot be pulled (ImagePullBackOff: no such host); correct "
            "spark.kubernetes.container.image",
        ),
        (
            [executor({"reason": "CreateContainerConfigError", "message": 'secret "s" not found'})],
            'the container of pod e-1 cannot be created (CreateContainerConfigError: secret "s" not found)',
        ),
        (
            [executor(condition={"type": "PodScheduled", "status": "False", "message": "Insufficient memory"})],
            "pod e-1 waits for a node (Insufficient memory); add nodes, or lower spark.executor.memory",
        ),
        ([executor({"reason": "ContainerCreating"})], None),
        ([executor(condition={"type": "PodScheduled", "status": "True"})], None),
    ],
)
def test_what_keeps_executors_from_starting_is_named(api, pods, said):
    api.answers["/api/v1/namespaces/shop/pods"] = {"items": pods}
    found = pods_obstacle(api, "spark-1")
    assert found is None if said is None else (found or "").startswith(said)
    assert "spark-app-selector%3Dspark-1" in api.asked[0][0]


def test_what_an_earlier_application_left_is_deleted(api):
    api.delete_executors("spark-1")
    paths = [path.replace("%3D", "=").replace("%2C", ",") for path, _ in api.asked]
    assert paths == [
        f"DELETE /api/v1/namespaces/shop/{kind}?labelSelector=spark-app-selector=spark-1,spark-role=executor"
        for kind in ("pods", "configmaps")
    ]


def test_pods_are_spoken_of_only_while_tasks_are_missing():
    assert Resources(MASTER, 0, 2, 0, pods="because").obstacle(2, 0) == "because"
    assert "Python processes to start" in Resources(MASTER, 2, 2, 2, pods="because").obstacle(2, 0)
