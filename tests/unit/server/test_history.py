"""Archives of ended jobs: what lists and pages show of them, and what a server holds of them."""

import json
from dataclasses import replace

import pytest

from penstock.errors import ConfigurationError
from penstock.service.options.server_options import ServerSettings
from penstock.service.rest.answers import checkpoints, jobs, vertices
from penstock.service.rest.answers import exception_answers as failures
from penstock.service.server import job_history as module
from penstock.service.server.job_archives import Archive, Unreadable, archive_content, outline
from penstock.service.server.job_history import MOST_HELD, History
from tests.rest.scripted_jobs import FAILED, FINISHED, failure, job

ENDED = job(FINISHED, "FINISHED")
BROKEN = job(FAILED, "FAILED", failures=(failure(),))


@pytest.fixture(params=["file", "memory"])
def folder(request, tmp_path):
    return (tmp_path / "archive").as_uri() if request.param == "file" else f"memory://archive-{tmp_path.name}"


def numbered(number):
    """A job that ended later than those with lower numbers."""
    changes = tuple(replace(change, when=change.when + number) for change in ENDED.changes)
    return replace(ENDED, job_id=f"{number:032x}", changes=changes)


# --- files ---
@pytest.mark.parametrize("record", [ENDED, BROKEN], ids=["finished", "failed"])
def test_a_job_is_read_as_it_was_written(folder, record):
    archive = Archive(folder)
    archive.keep(record)
    archive.keep(record)
    assert archive.job_ids() == [record.job_id]
    assert archive.read(record.job_id) == record
    with pytest.raises(FileNotFoundError):
        archive.read("e" * 32)


def test_the_file_holds_what_flinks_history_server_shows():
    said = {one["path"]: json.loads(one["json"]) for one in archive_content(BROKEN)["archive"]}
    path = f"/jobs/{BROKEN.job_id}"
    assert said["/jobs/overview"]["jobs"][0]["jid"] == BROKEN.job_id
    assert said[path] == json.loads(json.dumps(jobs.job_details(BROKEN)))
    assert said[f"{path}/exceptions"] == json.loads(json.dumps(failures.exceptions(BROKEN)))
    assert said[f"{path}/checkpoints"] == json.loads(json.dumps(checkpoints.statistics(BROKEN)))
    for vertex in BROKEN.vertices:
        assert said[f"{path}/vertices/{vertex.id}"] == json.loads(json.dumps(vertices.vertex_details(BROKEN, vertex)))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"archive": []}', '{"archive": [{"path": "/jobs/overview"}]}', "ü"])
def test_other_files_are_passed_over(folder, text, caplog):
    archive = Archive(folder)
    archive.keep(ENDED)
    archive._storage.write("f" * 32, [text.encode()])
    archive._storage.write("notes.txt", [b"mine"])
    with pytest.raises(Unreadable, match="does not hold an archived job"):
        archive.read("f" * 32)
    history = History([folder], 1000)
    history.refresh()
    history.refresh()
    assert [record.job_id for record in history.records()] == [FINISHED]
    assert caplog.text.count("skipping an archived job") == 1, "told once"


# --- what is shown ---
@pytest.mark.parametrize("record", [ENDED, BROKEN], ids=["finished", "failed"])
def test_an_outline_is_enough_for_lists(record):
    assert jobs.job_row(outline(record)) == jobs.job_row(record)
    assert jobs.jobs_overview([outline(record)]) == jobs.jobs_overview([record])
    assert len(repr(outline(record))) < len(repr(record))


def test_jobs_come_and_go_with_their_files(folder):
    archive, history = Archive(folder), History([folder, f"{folder}-other"], 1000)
    history.refresh()
    assert history.records() == [] and history.record(FINISHED) is None
    archive.keep(ENDED)
    Archive(f"{folder}-other").keep(BROKEN)
    assert history.record(FINISHED) == ENDED, "also before it is listed"
    history.refresh()
    assert {record.job_id for record in history.records()} == {FINISHED, FAILED}
    assert history.record(FAILED) == BROKEN
    archive.delete(FINISHED)
    history.refresh()
    assert [record.job_id for record in history.records()] == [FAILED] and history.record(FINISHED) is None


def test_the_newest_are_kept_and_older_ones_deleted(folder):
    archive = Archive(folder)
    for number in range(10):
        archive.keep(numbered(number))
    History([folder], 1000, kept=3).refresh()
    assert archive.job_ids() == [numbered(number).job_id for number in (7, 8, 9)]


def test_memory_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(module, "MOST_SHOWN", 50)
    archive = Archive(folder)
    for number in range(80):
        archive.keep(numbered(number))
    history = History([folder], 1000)
    history.refresh()
    assert {record.job_id for record in history.records()} == {numbered(number).job_id for number in range(30, 80)}
    for number in range(80):
        assert history.record(numbered(number).job_id) == numbered(number), "also those that are not listed"
    assert len(history._held) == MOST_HELD
    assert all(not slot.metrics for record in history.records() for slot in record.slots)
    assert len(archive.job_ids()) == 80


def test_options(tmp_path):
    options = {"jobmanager.archive.fs.dir": "s3://a/b", "historyserver.archive.retained-jobs": "7"}
    settings = ServerSettings.of(tmp_path, options)
    assert (settings.archive, settings.history, settings.history_kept) == ("s3://a/b", ("s3://a/b",), 7)
    several = ServerSettings.of(tmp_path, {**options, "historyserver.archive.fs.dir": "s3://a/b, file:///c"})
    assert several.history == ("s3://a/b", "file:///c")
    with pytest.raises(ConfigurationError, match="retained-jobs cannot be '0': it must be at least 1"):
        ServerSettings.of(tmp_path, {"historyserver.archive.retained-jobs": "0"})
