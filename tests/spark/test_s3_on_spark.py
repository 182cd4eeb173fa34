"""A job whose checkpoints, savepoint and results are on S3, through the death of a slot and of its driver."""

import json
import random
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any

import pytest

from tests.services.fixtures import started
from tests.services.s3 import S3
from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim
from tests.spark.s3_job import FIRST, SECOND

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
BUCKET = "job"


@pytest.fixture(scope="module")
def s3():
    yield from started(S3())


class OnS3(Victim):
    """The job as an outsider sees it in the bucket."""

    client: Any
    job = FIRST

    def objects(self, prefix=""):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def checkpoint(self):
        return max(self.complete(), default=0)

    def complete(self):
        """The numbers of the checkpoints that are complete."""
        keys = self.objects(f"checkpoints/{self.job}/chk-")
        return [int(key.split("/")[2].removeprefix("chk-")) for key in keys if key.endswith("/_metadata")]

    def ordered_at(self):
        """When the newest complete checkpoint was ordered, in milliseconds since 1970."""
        times = [0]
        for number in self.complete():
            with suppress(self.client.exceptions.NoSuchKey):  # a later one has replaced it meanwhile
                key = f"checkpoints/{self.job}/chk-{number}/_metadata"
                text = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode()
                times.append(json.loads(text.partition("\n")[2])["timestamp"])
        return max(times)

    def lines(self):
        for key in self.objects("results/"):
            assert not key.split("/")[-1].startswith("."), f"{key} is not deleted"
            yield from self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode().splitlines()


def test_a_job_on_s3_through_crashes_and_a_savepoint(s3, tmp_path):
    options = {**s3.environment, "BUCKET": s3.bucket(BUCKET)}
    victim = OnS3(tmp_path, "local[2]", "s3_job", options)
    victim.client = s3.client()
    victim.start()
    try:
        victim.round("slot", random.Random(1))
        victim.round("driver", random.Random(2))
        victim.await_checkpoint(victim.checkpoint() + 2)
        # One is retained; the next may be complete already, and the one before it not yet deleted.
        assert len(victim.complete()) <= 2
        (tmp_path / "handover").touch()
        victim.job = SECOND
        victim.await_checkpoint(0)
        victim.finish()
    finally:
        if victim.process is not None and victim.process.poll() is None:
            victim.kill_driver()
    check_results(victim)
    left = [key for key in victim.objects("checkpoints/") if "/chk-" in key]
    assert left == [], "checkpoints of a job that has ended are left behind"
    kept = (tmp_path / "savepoint").read_text().removeprefix(f"s3://{BUCKET}/")
    assert f"{kept}/_metadata" in victim.objects("savepoints/"), "a savepoint belongs to whoever asked for it"


def check_results(victim):
    counts = defaultdict(list)
    for line in victim.lines():
        assert not line.startswith("ALARM"), line
        key, count = line.split()
        counts[int(key)].append(int(count))
    expected = Counter(number % KEYS for number in victim.emitted())
    assert {key: sorted(found) for key, found in counts.items()} == {
        key: list(range(1, expected[key] + 1)) for key in range(KEYS)
    }
