"""What is particular about S3: conditional puts, uploads in parts, no folders, and a server that goes away."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import fsspec
import pytest

from penstock.base.storage import Storage
from penstock.errors import AlreadyThere, StorageError
from tests.connectors.storage.cutting import Cutting
from tests.services.s3 import KEY, SECRET

PART = 5 << 20
"""The smallest part of an upload that S3 takes."""


@pytest.fixture
def storage(bucket):
    return Storage(f"{bucket}/folder")


@pytest.fixture
def small_parts(monkeypatch):
    """From two parts on s3fs uploads in parts; its own are of 50 MiB."""
    from s3fs import S3FileSystem

    monkeypatch.setattr(S3FileSystem._pipe_file, "__defaults__", (PART, None, "overwrite"))


def reaching(monkeypatch, bucket, **options):
    """A Storage whose client has these options, given as fsspec's configuration."""
    monkeypatch.setitem(fsspec.config.conf, "s3", options)
    return Storage(f"{bucket}/folder")


# --- creating ---
def test_an_upload_in_parts_is_made_once(s3, bucket, storage, small_parts):
    makers, ready = 4, threading.Barrier(4)

    def make(maker):
        ready.wait()
        try:
            storage._place("large", bytes([maker]) * (2 * PART + 100))
            return True
        except AlreadyThere:
            return False

    with ThreadPoolExecutor(makers) as threads:
        won = list(threads.map(make, range(makers)))
    assert won.count(True) == 1
    assert storage.read("large") == bytes([won.index(True)]) * (2 * PART + 100)
    client, name = s3.client(), bucket.removeprefix("s3://")
    assert client.head_object(Bucket=name, Key="folder/large")["ETag"].endswith('-3"'), "it was no upload in parts"
    assert "Uploads" not in client.list_multipart_uploads(Bucket=name), "those that lost are left behind"


@pytest.mark.parametrize("large", [False, True], ids=["one put", "in parts"])
def test_a_file_whose_making_was_not_answered_is_ones_own(s3, bucket, monkeypatch, small_parts, large):
    """The object is there, the answer is lost, and the client, which asks again, hears that it exists."""
    proxy = Cutting(s3.port, b"If-None-Match: *")
    data = b"mine" * (3 * PART // 4 if large else 10)
    try:
        storage = reaching(monkeypatch, bucket, endpoint_url=proxy.endpoint, key=KEY, secret=SECRET)
        storage.create("f", data)
        assert proxy.cuts == 1 and storage.read("f") == data
        with pytest.raises(AlreadyThere):
            storage._place("f", data[1:])
    finally:
        proxy.close()


def test_objects_of_others_are_seen_at_once(s3, bucket, storage):
    """Listings are not remembered, though s3fs would."""
    client, name = s3.client(), bucket.removeprefix("s3://")
    for number in range(3):
        assert storage.names() == [str(n) for n in range(number)] and not storage.exists(str(number))
        client.put_object(Bucket=name, Key=f"folder/{number}", Body=b"x" * number)
        assert storage.exists(str(number)) and storage.size(str(number)) == number
    client.delete_object(Bucket=name, Key="folder/0")
    assert not storage.exists("0") and storage.names() == ["1", "2"]


# --- buckets ---
def test_no_bucket_is_made_by_mistake(s3):
    storage = Storage("s3://mistyped-bucket/folder")
    for make in (lambda: storage.create("f", b"1"), lambda: storage.write("f", [b"1"])):
        with pytest.raises(
            StorageError, match=r"cannot .* 's3://mistyped-bucket/folder/f': The specified bucket"
        ) as no:
            make()
        assert no.value.lasting
    assert "mistyped-bucket" not in [found["Name"] for found in s3.client().list_buckets()["Buckets"]]


def test_an_empty_bucket_stays(bucket):
    storage = Storage(bucket)
    storage.write("f", [b"1"])
    storage.delete("f")
    storage.delete_empty_folder("")
    storage.write("f", [b"2"])
    assert storage.names() == ["f"]


def test_wrong_credentials_are_told_at_once(s3, bucket, monkeypatch):
    storage = reaching(monkeypatch, bucket, endpoint_url=s3.endpoint, key=KEY, secret="guessed")
    for call in (
        storage.names,
        lambda: storage.create("f", b"1"),
        lambda: storage.read("f"),
        lambda: storage.size("f"),
    ):
        with pytest.raises(StorageError) as refused:
            call()
        assert refused.value.lasting


# --- a server that goes away ---
def everything(storage):
    """One call of every kind, all at the same time, by what they must return."""
    return {
        lambda: storage.write("written", [b"1" * 1000]): 1000,
        lambda: storage.create("created", b"2"): None,
        lambda: storage.read("old"): b"old",
        lambda: storage.open("old").read(): b"old",
        lambda: storage.exists("old"): True,
        lambda: storage.size("none"): None,
        lambda: storage.delete("older"): None,
    }


def begin(storage, threads):
    storage.write("old", [b"old"])
    storage.write("older", [b"older"])
    return [(call, expected) for call, expected in everything(storage).items()]


def check(calls, expected, storage):
    assert [call.result(120) for call in calls] == expected
    assert {name: storage.read(name) for name in storage.names()} == {
        "old": b"old",
        "written": b"1" * 1000,
        "created": b"2",
    }


def test_a_server_that_stands_still_for_a_moment(s3, storage):
    with ThreadPoolExecutor(10) as threads:
        todo = begin(storage, threads)
        os.killpg(s3.process.pid, signal.SIGSTOP)
        try:
            calls = [threads.submit(call) for call, _ in todo]
            time.sleep(1)
            assert not any(call.done() for call in calls)
        finally:
            os.killpg(s3.process.pid, signal.SIGCONT)
        check(calls, [expected for _, expected in todo], storage)


def test_a_server_that_is_started_again(s3, storage):
    with ThreadPoolExecutor(10) as threads:
        todo = begin(storage, threads)
        s3.kill()
        try:
            calls = [threads.submit(call) for call, _ in todo]
            time.sleep(0.5)
        finally:
            s3.start()
        check(calls, [expected for _, expected in todo], storage)


def test_a_server_that_stays_away(monkeypatch, bucket, s3):
    """The error is one of ours and names the file, whatever package it came from."""
    from tests.services.service import free_port

    monkeypatch.setattr("penstock.base.storage._PATIENCE", 0.0)
    away = f"http://127.0.0.1:{free_port()}"
    storage = reaching(
        monkeypatch,
        bucket,
        endpoint_url=away,
        key=KEY,
        secret=SECRET,
        config_kwargs={"retries": {"max_attempts": 0}},
    )
    for call in (storage.names, lambda: storage.create("f", b"1"), lambda: storage.write("f", [b"1"])):
        with pytest.raises(StorageError, match=rf"cannot \w.* '{bucket}/folder.*Could not connect") as failed:
            call()
        assert not failed.value.lasting
