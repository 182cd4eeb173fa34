"""`penstock run`, `info` and `package` with every form of a program, in this process instead of on Spark."""

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import compat
from penstock.base.archives import MANIFEST, unpack
from penstock.errors import ConfigurationError
from penstock.service.cli import app
from penstock.service.launch.program_package import make_package
from penstock.service.launch.program_runner import platform_name
from penstock.testing import in_process
from tests.unit.cli.programs_of_tests import program, wheel

DONE = "10\n20\narguments:"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """What a program changes in this process is undone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    before = set(sys.modules)
    with in_process():
        yield
    compat.uninstall()
    for name in set(sys.modules) - before:
        if "penstock" not in name:
            del sys.modules[name]


def penstock(*arguments: str):
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def said(*arguments: str) -> str:
    done = penstock(*arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.rstrip()


def refused(*arguments: str) -> str:
    done = penstock(*arguments)
    assert done.exit_code in (1, 2) and done.stderr.count("\n") == 1
    return done.stderr


def written(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def zipped(name: str, files: dict[str, str]) -> str:
    with zipfile.ZipFile(name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return name


class TestRun:
    def test_a_file_and_its_arguments(self) -> None:
        written("job.py", program())
        assert said("run", "-p", "1", "job.py", "-x", "--json", "y") == f"{DONE} -x --json y"

    def test_a_file_finds_the_modules_beside_it(self) -> None:
        written("far/helper.py", "def ten(x):\n    return x * 10\n")
        written("far/job.py", program("from helper import ten", "ten"))
        assert said("run", "far/job.py") == DONE

    @pytest.mark.parametrize("entry", ["job:main", ":main", "main"])
    def test_a_function_of_a_file(self, entry: str) -> None:
        written("far/job.py", program())
        assert said("run", "-c", entry, "far/job.py", "a") == f"{DONE} a"

    def test_a_function_of_a_module_in_this_directory(self) -> None:
        written("pkg/__init__.py", "")
        written("pkg/jobs.py", program())
        written("pkg/script.py", program())
        assert said("run", "-c", "pkg.jobs:main", "a", "b") == f"{DONE} a b"
        assert said("run", "-c", "pkg.script", "a") == f"{DONE} a"

    def test_as_flink_names_it(self) -> None:
        written("job.py", program())
        written("mod/jobs.py", program())
        assert said("run", "-p", "1", "-py", "job.py", "a") == f"{DONE} a"
        assert said("run", "-p1", "--python", "job.py") == DONE
        assert said("run", "-pym", "mod.jobs", "job.py") == f"{DONE} job.py"

    def test_a_zip(self) -> None:
        files = {
            "helper.py": "def ten(x):\n    return x * 10\n",
            "__main__.py": program("from helper import ten", "ten"),
        }
        assert said("run", zipped("job.zip", files), "a") == f"{DONE} a"

    def test_a_function_of_a_zip(self) -> None:
        assert said("run", "-c", "inside.jobs:main", zipped("job.zip", {"inside/jobs.py": program()})) == DONE

    def test_a_wheel(self) -> None:
        made = wheel(Path(), "wheeled", {"wheeled/__init__.py": program()}, "run-it = wheeled:main\n")
        assert said("run", str(made), "a") == f"{DONE} a"

    def test_a_wheel_with_several_scripts(self) -> None:
        made = wheel(Path(), "wheeled", {"wheeled/__init__.py": program()}, "a = wheeled:main\nb = wheeled:other\n")
        assert "has 2 console scripts: name the entry point with -c" in refused("run", str(made))
        assert said("run", "-c", "wheeled:main", str(made)) == DONE

    def test_pyflinks_names(self) -> None:
        written("job.py", program().replace("penstock.", "pyflink."))
        assert said("run", "--pyflink", "job.py") == DONE

    def test_settings_of_the_file_reach_the_program_and_the_program_wins(self) -> None:
        Path("penstock-conf.yaml").write_text("pipeline.max-parallelism: 77\npipeline.name: mine\n")
        text = "env.set_parallelism(1)\n    print(env.get_max_parallelism(), env.get_parallelism())"
        written("job.py", program().replace("env.set_parallelism(1)", text))
        assert said("run", "-p", "9", "job.py").startswith("77 1\n")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "name a program"),
            (["nothing.py"], "there is no file 'nothing.py'"),
            (["notes.txt"], "a program must be a file with the ending .py, .zip, .whl, not 'notes.txt'"),
            (["-D", "x", "job.py"], "-D must be given as name=value"),
            (["-c", "nowhere:main"], "there is no module 'nowhere' for -c nowhere:main"),
            (["-c", "job:nobody", "job.py"], "'job' has no function 'nobody'"),
            (["empty.zip"], "empty.zip has no __main__.py: name the entry point with -c"),
            (["broken.zip"], "broken.zip is not a zip file"),
        ],
    )
    def test_what_cannot_be_run_is_told_in_one_line(self, arguments: list[str], message: str) -> None:
        written("notes.txt", "")
        written("job.py", program())
        written("broken.zip", "not a zip")
        zipped("empty.zip", {"readme.txt": ""})
        assert message in refused("run", *arguments)

    def test_an_import_that_fails_inside_is_not_hidden(self) -> None:
        written("job.py", "import nothing_of_this_name\n")
        with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
            penstock("run", "-c", "job:main")

    def test_an_error_of_penstocks_has_its_name_in_front(self) -> None:
        written("job.py", program().replace("env.set_parallelism(1)", "env.set_parallelism(0)"))
        assert refused("run", "job.py").startswith("InvalidParallelism: ")


class TestInfo:
    def test_the_plan_as_text(self) -> None:
        written("job.py", program())
        shown = said("info", "-p", "3", "job.py")
        assert shown.startswith("a job: STREAMING, 1 slot, 1 stage\nStage 0\n") and "arguments:" not in shown

    def test_the_plan_as_json(self) -> None:
        written("job.py", program())
        nodes = json.loads(said("info", "--json", "-c", "main", "job.py"))["nodes"]
        assert [node["pact"] for node in nodes] == ["Data Source", "Operator", "Data Sink"]

    def test_what_the_program_prints_is_no_part_of_the_plan(self) -> None:
        written("job.py", "print('before')\n" + program())
        done = penstock("info", "--json", "-c", "main", "job.py")
        assert json.loads(done.stdout)["nodes"]
        assert done.stderr == "before\n"

    def test_a_program_that_catches_everything_is_stopped_nevertheless(self) -> None:
        text = program().replace(
            '    env.execute("a job")', '    try:\n        env.execute("a job")\n    except Exception:\n        pass'
        )
        written("job.py", text)
        assert said("info", "job.py").startswith("a job: ")

    def test_a_program_without_a_job(self) -> None:
        written("job.py", "hello = 1\n")
        assert refused("info", "job.py").startswith("NothingToExecute: ")


class TestPackage:
    def test_holds_what_is_imported_and_nothing_else(self) -> None:
        written("app/job.py", program("from lib.numbers import ten\nimport json, helper", "ten"))
        written("app/helper.py", "def f():\n    import late\n")
        written("app/late.py", "")
        written("app/unused.py", "")
        written("app/lib/numbers.py", "from . import more\ndef ten(x):\n    return x * 10\n")
        written("app/lib/more.py", "")
        written("app/lib/data.csv", "1,2\n")
        written("app/lib/__pycache__/x.pyc", "")
        written("app/extra/schema.json", "{}")
        shown = said("package", "app/job.py", "--json", "-i", "app/extra")
        assert json.loads(shown)["program"] == [
            "extra/schema.json", "helper.py", "job.py", "late.py", "lib/data.csv", "lib/more.py", "lib/numbers.py",
        ]  # fmt: skip
        assert said("run", "job.zip", "a") == f"{DONE} a"

    def test_takes_its_libraries_along(self) -> None:
        made = wheel(Path(), "tenfold", {"tenfold.py": "def ten(x):\n    return x * 10\n"})
        written("requirements.txt", f"tenfold @ {made.absolute().as_uri()}\n")
        written("job.py", program("from tenfold import ten", "ten"))
        shown = said("package", "job.py", "-r", "requirements.txt", "-o", "out.zip")
        assert shown.splitlines()[1:] == ["program: job.py", "libraries: tenfold 1.0", "runs anywhere"]
        assert said("run", "out.zip") == DONE

    def test_what_a_cluster_has_is_left_out(self) -> None:
        made = wheel(Path(), "penstock", {"penstock/__init__.py": "wrong = True\n"})
        written("requirements.txt", f"penstock @ {made.absolute().as_uri()}\n")
        written("job.py", program())
        assert "left out, because clusters provide them:" in said("package", "job.py", "-r", "requirements.txt")
        assert not [name for name in zipfile.ZipFile("job.zip").namelist() if "libraries/" in name]

    def test_a_folder_with_a_function(self) -> None:
        written("app/pkg/jobs.py", program())
        written("app/.venv/big.py", "")
        assert "app has no __main__.py" in refused("package", "app")
        said("package", "app", "-c", "pkg.jobs:main")
        assert said("run", "app.zip", "a") == f"{DONE} a"
        assert not [name for name in zipfile.ZipFile("app.zip").namelist() if ".venv" in name]

    def test_the_same_files_give_the_same_bytes(self) -> None:
        written("job.py", program())
        first, second = (make_package(Path("job.py"), Path(name)) for name in ("a.zip", "b.zip"))
        assert first.path.read_bytes() == second.path.read_bytes()

    def test_compiled_code_runs_where_it_was_made_for(self) -> None:
        made = wheel(Path(), "fast", {"_fast.so": "", "fast.py": ""})
        written("requirements.txt", f"fast @ {made.absolute().as_uri()}\n")
        written("job.py", program("import fast"))
        assert said("package", "job.py", "-r", "requirements.txt").endswith(f"runs on {platform_name()} only")
        assert said("run", "job.zip") == DONE
        unpack("job.zip", "other")
        manifest = json.loads(Path("other", MANIFEST).read_text())
        manifest["compiled-for"] = "Python 2.7 on Plan9 mips"
        Path("other", MANIFEST).write_text(json.dumps(manifest))
        zipped(
            "foreign.zip", {str(p.relative_to("other")): p.read_text() for p in Path("other").rglob("*") if p.is_file()}
        )
        assert "compiled for Python 2.7 on Plan9 mips, but this machine has" in refused("run", "foreign.zip")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nothing.py"], "there is no file or folder 'nothing.py'"),
            (["broken.py"], "broken.py cannot be packed"),
            (["job.py", "-r", "nothing.txt"], "there is no file 'nothing.txt'"),
            (["job.py", "-i", "nothing"], "there is no file or folder 'nothing'"),
            (["job.py", "-i", "/etc/hostname"], "is not below"),
        ],
    )
    def test_what_cannot_be_packed(self, arguments: list[str], message: str) -> None:
        written("job.py", program())
        written("broken.py", "def (:\n")
        assert message in refused("package", *arguments)
        assert not Path("job.zip").exists()

    def test_requirements_that_cannot_be_installed(self) -> None:
        written("job.py", program())
        written("requirements.txt", "./nothing-1.0-py3-none-any.whl\n")
        done = penstock("package", "job.py", "-r", "requirements.txt")
        assert done.exit_code == 1 and "requirements.txt cannot be installed" in done.stderr
        assert not Path("job.zip").exists()


class TestUnpacking:
    def test_is_done_once(self, tmp_path: Path) -> None:
        zipped("a.zip", {"x.py": "1"})
        unpack("a.zip", tmp_path / "to")
        (tmp_path / "to/x.py").write_text("2")
        unpack("a.zip", tmp_path / "to")
        assert (tmp_path / "to/x.py").read_text() == "2"

    def test_leaves_nothing_of_a_broken_archive(self, tmp_path: Path) -> None:
        written("a.zip", "no zip")
        with pytest.raises(ConfigurationError, match="is not a zip file"):
            unpack("a.zip", tmp_path / "to" / "there")
        assert list((tmp_path / "to").iterdir()) == []

    def test_does_not_write_outside_its_folder(self, tmp_path: Path) -> None:
        zipped("a.zip", {"../../evil.py": "1", "/abs.py": "2"})
        unpack("a.zip", tmp_path / "deep" / "to")
        assert sorted(p.name for p in (tmp_path / "deep/to").rglob("*.py")) == ["abs.py", "evil.py"]
        assert not list(tmp_path.glob("*.py"))
