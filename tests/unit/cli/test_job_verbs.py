"""The verbs for jobs of a server ask what Flink's client asks, and say what Flink's answers mean."""

import json

import pytest

from tests.unit.cli.recorded_server import RECORDED, RecordedServer, said

JOB = "ac1107dd499275ed3ad01ebfb079e5fb"
FAILED, FINISHED = "7d970f9c4ce3d0d881553594d1566203", "120f2b3c66c89aa2984853add80b9a5e"
TRIGGER = "5cde531d02ceb26197de72890d2e8d83"
TRIGGERED = said({"request-id": TRIGGER}, 202)


def overview(*jobs: tuple[str, str]) -> object:
    like = RECORDED["GET /jobs/overview"][1]["body"]["jobs"][0]
    return said({"jobs": [{**like, "jid": jid, "state": state, "name": f"job {jid[:2]}"} for jid, state in jobs]})


SOME = overview(
    ("a" * 32, "RUNNING"),
    ("b" * 32, "FINISHED"),
    ("c" * 32, "CREATED"),
    ("d" * 32, "RESTARTING"),
    ("e" * 32, "FAILED"),
    ("f" * 32, "CANCELED"),
    ("ab" + "0" * 30, "INITIALIZING"),
)


class TestList:
    def test_flinks_own_answer_is_a_table(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("GET /jobs/overview", "restarting")
        done = penstock("list")
        assert done.code == 0
        rows = [line.split("  ") for line in done.out.splitlines() if "Yardstick" in line]
        assert [row[0] for row in rows] == [JOB, FINISHED, FAILED]  # the oldest one first
        assert "RESTARTING" in done.out and "0 of 4" in done.out and "3.1s" in done.out

    @pytest.mark.parametrize(
        ("switches", "first_letters"),
        [([], "aacd"), (["-r"], "ad"), (["-s"], "ac"), (["-r", "-s"], "aacd"), (["-a"], "aabcdef")],
    )
    def test_which_jobs_are_listed(self, cluster: RecordedServer, penstock, switches, first_letters) -> None:
        cluster.on("GET /jobs/overview", SOME)
        listed = json.loads(penstock("list", "--json", *switches).out)["jobs"]
        assert "".join(sorted(job["jid"][0] for job in listed)) == first_letters

    def test_json_holds_flinks_fields(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("GET /jobs/overview", "ok")
        listed = json.loads(penstock("list", "-a", "--json").out)["jobs"]
        assert listed == sorted(RECORDED["GET /jobs/overview"][2]["body"]["jobs"], key=lambda job: job["start-time"])

    def test_no_jobs(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("GET /jobs/overview", "empty cluster")
        assert penstock("list").out == "no running or scheduled jobs; -a lists those that have ended\n"
        assert penstock("list", "-a").out == "no jobs\n"
        assert json.loads(penstock("list", "--json").out) == {"jobs": []}


class TestCancel:
    def test_a_job(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("PATCH /jobs/:jobid", "cancel")
        done = penstock("cancel", JOB.upper())
        assert (done.code, done.out) == (0, f"job {JOB} is cancelled\n")
        asked = cluster.the(f"PATCH /jobs/{JOB}")
        assert asked.query == {"mode": ["cancel"]} and asked.body == b"{}"

    @pytest.mark.parametrize(
        ("case", "code", "message"),
        [
            ("cancel unknown job", 4, "error: Job could not be found.…\n"),
            (
                "cancel a finished job",
                1,
                "error: Job cancellation failed because the job has already reached another terminal state "
                "(FINISHED).…\n",
            ),
        ],
    )
    def test_a_refusal_is_one_line(self, cluster: RecordedServer, penstock, case, code, message) -> None:
        cluster.on("PATCH /jobs/:jobid", case)
        done = penstock("cancel", JOB)
        assert (done.code, done.out, done.err) == (code, "", message)

    @pytest.mark.parametrize(
        ("arguments", "directory"), [(["-s", JOB], None), (["-s", "s3://bucket/x", JOB], "s3://bucket/x")]
    )
    def test_with_a_savepoint(self, cluster: RecordedServer, penstock, arguments, directory) -> None:
        cluster.on("POST /jobs/:jobid/savepoints", "cancel-job true").on(
            "GET /jobs/:jobid/savepoints/:triggerid",
            "cancel with savepoint (IN_PROGRESS)",
            "cancel with savepoint (COMPLETED)",
        )
        done = penstock("cancel", "--json", *arguments)
        assert done.code == 0
        body = cluster.the(f"POST /jobs/{JOB}/savepoints").json()
        assert body == {"cancel-job": True, **({"target-directory": directory} if directory else {})}
        location = recorded_location("cancel with savepoint (COMPLETED)")
        assert json.loads(done.out) == {"jobid": JOB, "savepoint": location}

    def test_without_a_job(self, penstock) -> None:
        done = penstock("cancel")
        assert done.code == 2 and "name the job to cancel" in done.err


def recorded_location(case: str) -> str:
    entries = RECORDED["GET /jobs/:jobid/savepoints/:triggerid"]
    return next(entry for entry in entries if entry["case"] == case)["body"]["operation"]["location"]


class TestStop:
    def test_with_drain_and_a_directory(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("POST /jobs/:jobid/stop", "stop").on(
            "GET /jobs/:jobid/savepoints/:triggerid", "stop (IN_PROGRESS)", "stop (IN_PROGRESS)", "stop (COMPLETED)"
        )
        done = penstock("stop", "--drain", "-p", "/savepoints", JOB)
        assert (done.code, done.err) == (0, "")
        assert done.out == f"job {JOB} has stopped, and its savepoint is {recorded_location('stop (COMPLETED)')}\n"
        assert cluster.the(f"POST /jobs/{JOB}/stop").json() == {"targetDirectory": "/savepoints", "drain": True}
        assert len(cluster.asked) == 4

    def test_a_failure_is_told_by_its_reason(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("POST /jobs/:jobid/stop", TRIGGERED).on(
            "GET /jobs/:jobid/savepoints/:triggerid", "stop before tasks run (COMPLETED)"
        )
        done = penstock("stop", JOB)
        assert done.code == 1 and done.out == ""
        assert done.err.startswith("error: Checkpoint triggering task ") and done.err.count("\n") == 1

    def test_the_innermost_cause_is_shown(self, cluster: RecordedServer, penstock) -> None:
        trace = "a.b.Outer: why not\n\tat x\nCaused by: c.Inner: d.Deep: the disk is full\n\tat y\n"
        cause = {"class": "a.b.Outer", "stack-trace": trace, "serialized-throwable": ""}
        cluster.on("POST /jobs/:jobid/stop", TRIGGERED).on(
            "GET /jobs/:jobid/savepoints/:triggerid",
            said({"status": {"id": "COMPLETED"}, "operation": {"failure-cause": cause}}),
        )
        assert penstock("stop", JOB).err == "error: the disk is full\n"


class TestSavepoint:
    def test_into_a_directory(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("POST /jobs/:jobid/savepoints", "trigger").on(
            "GET /jobs/:jobid/savepoints/:triggerid", "savepoint (IN_PROGRESS)", "savepoint (COMPLETED)"
        )
        done = penstock("savepoint", JOB, "/here")
        assert done.out == f"savepoint of job {JOB}: {recorded_location('savepoint (COMPLETED)')}\n"
        body = cluster.the(f"POST /jobs/{JOB}/savepoints").json()
        assert body == {"target-directory": "/here", "cancel-job": False}
        trigger = RECORDED["POST /jobs/:jobid/savepoints"][1]["body"]["request-id"]
        assert cluster.lines()[-1] == f"GET /jobs/{JOB}/savepoints/{trigger}"

    def test_detached(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("POST /jobs/:jobid/savepoints", TRIGGERED)
        assert json.loads(penstock("savepoint", "--detached", "--json", JOB).out) == {
            "jobid": JOB,
            "request-id": TRIGGER,
        }
        assert len(cluster.asked) == 1

    def test_disposal(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("POST /savepoint-disposal", "dispose").on(
            "GET /savepoint-disposal/:triggerid", "disposed (IN_PROGRESS)", "disposed (COMPLETED)"
        )
        done = penstock("savepoint", "-d", "/savepoints/x")
        assert (done.code, done.out) == (0, "savepoint /savepoints/x is disposed of\n")
        assert cluster.the("POST /savepoint-disposal").json() == {"savepoint-path": "/savepoints/x"}

    def test_disposal_of_what_is_not_there(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("POST /savepoint-disposal", "dispose").on(
            "GET /savepoint-disposal/:triggerid", "not there (COMPLETED)"
        )
        done = penstock("savepoint", "-d", "/savepoints/x")
        assert done.code == 1 and done.err.startswith("error: Could not dispose savepoint file:")

    @pytest.mark.parametrize("arguments", [[], ["-d", "/x", JOB]])
    def test_either_a_job_or_a_savepoint(self, penstock, arguments) -> None:
        assert penstock("savepoint", *arguments).code == 2


class TestCheckpoint:
    def test_of_a_kind(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("POST /jobs/:jobid/checkpoints", "trigger").on(
            "GET /jobs/:jobid/checkpoints/:triggerid", "checkpoint (IN_PROGRESS)", "checkpoint (COMPLETED)"
        )
        assert penstock("checkpoint", "-t", "full", JOB).out == f"checkpoint 45 of job {JOB} is complete\n"
        assert cluster.the(f"POST /jobs/{JOB}/checkpoints").json() == {"checkpointType": "FULL"}

    def test_of_a_kind_that_is_none(self, penstock) -> None:
        assert penstock("checkpoint", "-t", "HALF", JOB).code == 2


class TestModify:
    DONE = said({"status": {"id": "COMPLETED"}, "operation": {}})

    def test_rescales(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("POST /jobs/:jobid/rescaling", TRIGGERED).on(
            "GET /jobs/:jobid/rescaling/:triggerid",
            said({"status": {"id": "IN_PROGRESS"}, "operation": None}),
            self.DONE,
        )
        assert penstock("modify", "-p", "3", JOB).out == f"job {JOB} runs with parallelism 3\n"
        assert cluster.the(f"POST /jobs/{JOB}/rescaling").json() == {"parallelism": 3}
        assert cluster.lines()[1:] == [f"GET /jobs/{JOB}/rescaling/{TRIGGER}"] * 2

    def test_what_flink_says_to_it(self, cluster: RecordedServer, penstock) -> None:
        refusal = next(iter(RECORDED["PATCH /jobs/:jobid/rescaling"]))
        cluster.on("POST /jobs/:jobid/rescaling", said(refusal["body"], 503))
        done = penstock("modify", "-p", "3", JOB)
        assert (done.code, done.err) == (1, "error: Rescaling is temporarily disabled. See FLINK-12312.…\n")

    @pytest.mark.parametrize("arguments", [[JOB], ["-p", "0", JOB], ["-p", "many", JOB]])
    def test_needs_a_parallelism(self, penstock, arguments) -> None:
        assert penstock("modify", *arguments).code == 2


class TestAbbreviatedIds:
    @pytest.mark.parametrize("given", ["d", "dd", "DDDD", "d" * 31])
    def test_a_unique_beginning_is_enough(self, cluster: RecordedServer, penstock, given) -> None:
        cluster.on("GET /jobs/overview", SOME).on("PATCH /jobs/:jobid", "cancel")
        assert penstock("cancel", given).out == f"job {'d' * 32} is cancelled\n"

    def test_an_ambiguous_one_lists_the_jobs(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("GET /jobs/overview", SOME)
        done = penstock("cancel", "a")
        assert done.code == 4 and "2 jobs begin with 'a'" in done.err
        assert f"{'a' * 32} (job aa, RUNNING)" in done.err and "INITIALIZING" in done.err

    def test_an_unknown_one(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("GET /jobs/overview", SOME)
        done = penstock("cancel", "9")
        assert done.code == 4 and "no job has an id that begins with '9'" in done.err

    @pytest.mark.parametrize("given", ["xyz", "a" * 33, "../a"])
    def test_what_is_no_id(self, cluster: RecordedServer, penstock, given) -> None:
        assert penstock("cancel", given).code == 2
        assert cluster.asked == []


class TestLogs:
    def test_the_log_and_the_output(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("GET /jobs/:jobid/log", said("a\nü\n".encode())).on("GET /jobs/:jobid/stdout", said(b"printed\n"))
        assert penstock("logs", JOB).out == "a\nü\n"
        assert penstock("logs", "--stdout", JOB).out == "printed\n"

    def test_following_reads_on_where_it_was_and_ends_with_the_job(self, cluster: RecordedServer, penstock) -> None:
        cluster.on(
            "GET /jobs/:jobid/log", said("ü\n".encode()), said(b""), said(b"b\n"), said(b"last\n"), said(b"")
        ).on("GET /jobs/:jobid/status", "running", "running", "running", "finished")
        assert penstock("logs", "-f", JOB).out == "ü\nb\nlast\n"
        offsets = [asked.query.get("offset", ["0"]) for asked in cluster.asked if asked.path.endswith("/log")]
        assert offsets == [["0"], ["3"], ["3"], ["5"], ["10"]]

    def test_a_log_that_was_begun_anew_is_read_from_its_beginning(self, cluster: RecordedServer, penstock) -> None:
        cluster.on(
            "GET /jobs/:jobid/log",
            said(b"first\n", x_log_size="6"),
            said(b"", x_log_size="4"),
            said(b"new\n", x_log_size="4"),
            said(b"", x_log_size="4"),
        ).on("GET /jobs/:jobid/status", "running", "finished")
        assert penstock("logs", "-f", JOB).out == "first\nnew\n"

    def test_of_an_unknown_job(self, cluster: RecordedServer, penstock) -> None:
        assert penstock("logs", JOB).code == 4


class TestState:
    def test_keys_and_values_are_a_table(self, cluster: RecordedServer, penstock) -> None:
        entries = [{"key": "a", "found": True, "value": 1}, {"key": [1, "x"], "found": True, "value": {"n": None}}]
        cluster.on("GET /jobs/:jobid/state/:name", said({"entries": entries, "epoch": 7}))
        done = penstock("state", "--limit", "5", JOB, "a name/ü", "a", '[1, "x"]')
        assert [line.split() for line in done.out.splitlines()[2:4]] == [
            ["a", "1"],
            ["[1,", '"x"]', '{"n":', "null}"],
        ]
        asked = cluster.asked[0]
        assert asked.path == f"/jobs/{JOB}/state/a%20name%2F%C3%BC"
        assert asked.query == {"key": ["a", '[1, "x"]'], "limit": ["5"]}

    def test_json_is_the_whole_answer(self, cluster: RecordedServer, penstock) -> None:
        cluster.on("GET /jobs/:jobid/state/:name", said({"entries": [], "epoch": 7}))
        assert json.loads(penstock("state", "--json", JOB, "n").out) == {"entries": [], "epoch": 7}
        assert cluster.asked[0].query == {}
