"""The client of the REST API: what goes over the wire, and how a failure is told."""

import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from penstock.service.cli.exit_codes import CommandFailed, NoServer, NotAllowed, NotFound
from penstock.service.cli.rest_client import RestClient, first_line
from tests.unit.cli.recorded_server import RecordedServer, said

TRACE = """<Exception on server side:
a.B: b
\tat x
Caused by: a.C: c
\tat y
Caused by: a.D: d
\tat z
End of exception on server side>"""


@pytest.fixture
def client(cluster: RecordedServer) -> RestClient:
    return RestClient(f"http://{cluster.address}/", timeout=20)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class TestRequests:
    def test_a_file_is_uploaded_under_its_own_name(
        self, cluster: RecordedServer, client: RestClient, tmp_path: Path
    ) -> None:
        cluster.on("POST /jars/upload", "upload")
        content = bytes(range(256)) * 1000
        (tmp_path / "my job.zip").write_bytes(content)
        client.upload("/jars/upload", tmp_path / "my job.zip")
        asked = cluster.the("POST /jars/upload")
        kind, _, boundary = asked.headers["Content-Type"].partition("; boundary=")
        assert kind == "multipart/form-data" and asked.headers["Content-Length"] == str(len(asked.body))
        before, part, after = asked.body.split(f"--{boundary}".encode())
        head, _, rest = part.partition(b"\r\n\r\n")
        assert (before, after) == (b"", b"--\r\n")
        assert b'filename="my job.zip"' in head and rest == content + b"\r\n"

    def test_a_token_is_sent(self, cluster: RecordedServer) -> None:
        cluster.on("GET /jobs/overview", "empty cluster")
        RestClient(f"http://{cluster.address}", token="abc").get("/jobs/overview")
        RestClient(f"http://{cluster.address}").get("/jobs/overview")
        assert [asked.headers.get("Authorization") for asked in cluster.asked] == ["Bearer abc", None]

    def test_a_proxy_of_the_environment_is_not_used_on_this_machine(
        self, cluster: RecordedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
        monkeypatch.delenv("no_proxy", raising=False)
        cluster.on("GET /jobs/overview", "empty cluster")
        assert RestClient(f"http://{cluster.address}").get("/jobs/overview") == {"jobs": []}


class TestRedirects:
    def test_a_standby_sends_every_kind_of_request_on_to_the_leader(
        self, cluster: RecordedServer, client: RestClient, tmp_path: Path
    ) -> None:
        leader = RecordedServer()
        leader.on("POST /jars/upload", "upload").on("PATCH /jobs/:jobid", "cancel")
        for line in ("POST /jars/upload", "PATCH /jobs/x"):
            target = f"http://{leader.address}/v1{line.partition(' ')[2]}"
            cluster.on(line, said({}, 307, Location=target))
        (tmp_path / "job.py").write_text("x = 1\n")
        client.upload("/jars/upload", tmp_path / "job.py")
        client.patch("/jobs/x")
        assert leader.lines() == cluster.lines() == ["POST /jars/upload", "PATCH /jobs/x"]
        assert [asked.body for asked in leader.asked][1] == b"{}" and b"x = 1\n" in leader.asked[0].body
        leader.close()

    def test_servers_that_send_us_in_circles(self, cluster: RecordedServer, client: RestClient) -> None:
        cluster.on("GET /jobs/overview", said({}, 307, Location=f"http://{cluster.address}/v1/jobs/overview"))
        with pytest.raises(CommandFailed, match="no server seems to be the leader"):
            client.get("/jobs/overview")
        assert len(cluster.asked) == 4

    def test_another_kind_of_address_is_not_followed(self, cluster: RecordedServer, client: RestClient) -> None:
        cluster.on("GET /jobs/overview", said({}, 302, Location="file:///etc/passwd"))
        with pytest.raises(NotAllowed):
            client.get("/jobs/overview")

    def test_flinks_308_without_an_address_is_an_error_like_others(
        self, cluster: RecordedServer, client: RestClient
    ) -> None:
        cluster.on("PATCH /jobs/:jobid", "stop mode")
        with pytest.raises(CommandFailed, match=r'^The termination mode "stop" has been removed'):
            client.patch("/jobs/x", mode="stop")


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "kind", "message"),
        [
            (said({"errors": ["a.b.Oops: c.d.Why: it broke\n\tat x"]}, 500), CommandFailed, "it broke"),
            (said({"errors": ["Internal server error.", TRACE]}, 500), CommandFailed, "d"),
            (said({"errors": ["Internal server error."]}, 500), CommandFailed, "Internal server error."),
            (said({"errors": ["one", "two", "one"]}, 400), CommandFailed, "one; two"),
            (said({"errors": []}, 503), CommandFailed, "the server answered with status 503"),
            (said(b"<html>", 502), CommandFailed, "the server answered with status 502"),
            (said([], 500), CommandFailed, "the server answered with status 500"),
            (said({"errors": ["no such job"]}, 404), NotFound, "no such job"),
            (said({"errors": ["no"]}, 401), NotAllowed, "no; give a token with --token or the variable PENSTOCK_TOKEN"),
            (said({"errors": ["no"]}, 403), NotAllowed, "no; give a token with --token or the variable PENSTOCK_TOKEN"),
        ],
    )  # fmt: skip
    def test_what_a_server_says_becomes_one_line(self, cluster: RecordedServer, client, answer, kind, message) -> None:
        cluster.on("GET /jobs/overview", answer)
        with pytest.raises(CommandFailed) as raised:
            client.get("/jobs/overview")
        assert (type(raised.value), str(raised.value)) == (kind, message)

    def test_an_answer_that_is_no_json(self, cluster: RecordedServer, client: RestClient) -> None:
        cluster.on("GET /jobs/overview", said(b"<html>hello"))
        with pytest.raises(CommandFailed, match="not valid JSON"):
            client.get("/jobs/overview")

    def test_no_server_says_how_to_start_one(self) -> None:
        url = f"http://127.0.0.1:{free_port()}"
        with pytest.raises(NoServer, match=f"no server answers at {url} .*`penstock server start`"):
            RestClient(url).get("/overview")

    def test_a_host_that_is_not_there(self) -> None:
        with pytest.raises(NoServer, match="penstock server start"):
            RestClient("http://nowhere.invalid:8081", timeout=20).get("/overview")

    def test_a_server_that_does_not_answer(self) -> None:
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen()
            with pytest.raises(NoServer, match=r"does not answer within 0.2 s"):
                RestClient(f"http://127.0.0.1:{deaf.getsockname()[1]}", timeout=0.2).get("/overview")

    def test_lines_without_javas_names(self) -> None:
        assert first_line("org.a.B: org.c.DException: it is: so") == "it is: so"
        assert first_line("ValueError: it is so\nmore") == "ValueError: it is so"
        assert first_line("see https://x.Y: z") == "see https://x.Y: z"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and the certificate that it signed itself, for 127.0.0.1, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key", "-out", folder / "cert"],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "both").write_bytes((folder / "key").read_bytes() + (folder / "cert").read_bytes())
    return folder


class TestTLS:
    @pytest.fixture
    def encrypted(self, certificate: Path):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "both")
        server = RecordedServer(context)
        server.on("GET /jobs/overview", "empty cluster")
        yield server
        server.close()

    def test_a_certificate_must_be_trusted(self, encrypted: RecordedServer, certificate: Path, penstock) -> None:
        url = f"https://{encrypted.address}"
        refused = penstock("list", "-m", url)
        assert refused.code == 5 and "a certificate that is not trusted" in refused.err
        assert penstock("list", "-m", url, "--cacert", str(certificate / "cert")).code == 0
        options = ["-D", "security.ssl.rest.enabled=true", "-D", f"security.ssl.rest.truststore={certificate / 'cert'}"]
        assert penstock("list", "-m", encrypted.address, *options).code == 0

    def test_certificates_that_cannot_be_read(self, encrypted: RecordedServer, certificate: Path, penstock) -> None:
        for file in ("nothing", "key"):
            done = penstock("list", "-m", f"https://{encrypted.address}", "--cacert", str(certificate / file))
            assert done.code == 1 and "PEM is expected" in done.err

    def test_a_token_does_not_leave_the_encryption(self, encrypted: RecordedServer, cluster, certificate) -> None:
        encrypted.on("GET /jobs/overview", said({}, 307, Location=f"http://{cluster.address}/v1/jobs/overview"))
        trust = ssl.create_default_context(cafile=certificate / "cert")
        with pytest.raises(NotAllowed, match="not encrypted"):
            RestClient(f"https://{encrypted.address}", "token", trust).get("/jobs/overview")
        assert cluster.asked == []
