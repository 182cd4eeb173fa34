"""Jobs on HDFS and YARN with Kerberos, with a KDC on this machine: they log in with a keytab, or say what is wrong."""

import time

import pytest

from penstock.base.storage import Storage
from tests.services.fixtures import started
from tests.services.hadoop import TOKEN_LIFETIME, Hadoop
from tests.services.kerberos import REALM, Kdc
from tests.yarn.yarn_jobs import YarnJob, seconds_until_checkpoint

pytestmark = [pytest.mark.soak, pytest.mark.spark]
KEYTAB, PRINCIPAL = "security.kerberos.login.keytab", "security.kerberos.login.principal"


@pytest.fixture(scope="module")
def kdc():
    yield from started(Kdc())


@pytest.fixture(scope="module")
def secured(kdc):
    yield from started(Hadoop(nodes=2, kdc=kdc))


@pytest.fixture
def submit(secured, kdc, tmp_path, monkeypatch):
    """Start a job, which has no tickets. The test has some, to read what the job wrote."""
    kdc.log_in("reader")
    for name, value in {**secured.environment, "KRB5CCNAME": kdc.environment["KRB5CCNAME"]}.items():
        monkeypatch.setenv(name, value)
    jobs = []

    def start(mode, count, rate, settings):
        jobs.append(YarnJob(secured, tmp_path, mode, count, rate, settings))
        print(f"starts {jobs[-1].url}, {mode}", flush=True)
        jobs[-1].start()
        return jobs[-1]

    yield start
    for job in jobs:
        job.end()


def login(kdc, mode, name="alice"):
    """Return the settings of a login: Flink's options, or Spark's own where `spark-submit` has to know them."""
    keytab, principal = str(kdc.keytab(name)), f"{name}@{REALM}"
    if mode == "run":
        return {KEYTAB: keytab, PRINCIPAL: principal}
    return {
        "spark.kerberos.keytab": keytab,
        "spark.kerberos.principal": principal,
        "spark.yarn.appMasterEnv.KRB5_CONFIG": str(kdc.configuration),
        "spark.driver.extraJavaOptions": f"-Djava.security.krb5.conf={kdc.configuration}",
    }


@pytest.mark.parametrize(("mode", "fault"), [("client", "kill_executor"), ("cluster", "kill_application_master")])
def test_results_are_exact_whatever_is_killed(submit, kdc, recoveries, mode, fault):
    job = submit(mode, 6000, 100, login(kdc, mode))
    job.await_checkpoint()
    seconds = seconds_until_checkpoint(job, fault)
    recoveries.setdefault(f"{fault.replace('_', ' ')} ({mode}, Kerberos)", []).append(seconds)
    assert job.await_end() == 0, job.log()[-6000:]
    job.check_results()


def test_a_job_outlives_its_tokens(submit, kdc, recoveries):
    """The containers' own tokens have ended when slots start anew: they use tokens that the driver sends."""
    job = submit("run", 30_000, 80, {**login(kdc, "run"), "spark.security.credentials.retryWait": "10s"})
    job.await_checkpoint()
    began = time.monotonic()
    job.until(lambda: time.monotonic() - began > TOKEN_LIFETIME, "it stands still")
    seconds = seconds_until_checkpoint(job, "kill_executor")
    recoveries.setdefault("kill executor (run, Kerberos)", []).append(seconds)
    assert job.await_end() == 0, job.log()[-6000:]
    job.check_results()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {PRINCIPAL: f"bob@{REALM}"},
            f"has no key for 'bob@{REALM}'; it has keys for these principals: 'alice@{REALM}'",
        ),
        ({KEYTAB: "/nowhere/alice.keytab"}, "the keytab '/nowhere/alice.keytab' cannot be read: No such file"),
        ({KEYTAB: None}, f"{PRINCIPAL} is set to 'alice@{REALM}', and {KEYTAB} is not set"),
        ({PRINCIPAL: None}, f"and {PRINCIPAL} is not set"),
        ({KEYTAB: None, PRINCIPAL: None}, "the login to Kerberos failed: No Kerberos credentials available"),
        ("stale", "the login to Kerberos failed: "),
    ],
)
def test_a_login_that_cannot_work_is_one_clear_error(submit, kdc, change, message):
    if change == "stale":
        settings = login(kdc, "run", "carol")
        kdc.change_key("carol")
    else:
        settings = {name: value for name, value in {**login(kdc, "run"), **change}.items() if value is not None}
    job = submit("run", 500, 500, settings)
    assert job.await_end() == 1
    said = [line for line in job.log().splitlines() if "Error: " in line]
    assert len(said) == 1 and message in said[0], job.log()
    assert Storage(f"{job.url}/out").names() == []
