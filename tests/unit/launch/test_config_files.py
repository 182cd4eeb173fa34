"""Settings from files, the environment and the command line: how they are written, which wins, where each came from."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.service.launch.config_files import (
    COMMAND_LINE,
    DEFAULT,
    PREFIX,
    find_file,
    load_configuration,
    option_name,
)
from penstock.service.options.known_options import known_options


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory and a home of the test's own, without any configuration."""
    for folder in ("here", "home", "conf"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def written(folder: Path, text: str, name: str = "penstock-conf.yaml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def values(folder: Path, *options: str, **environment: str) -> dict[str, str]:
    found = load_configuration(options, folder, environment)
    return {name: setting.value for name, setting in found.items()}


NOTHING = Path(__file__).parent
"""A folder without any configuration."""
WORDS = st.text(st.sampled_from("xyz0189:#-{} '"), min_size=1).filter(lambda text: text.strip() == text)


def groupings(name: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every way to write a name as keys within keys: a.b.c, a: {b.c}, a.b: {c}, a: {b: {c}}."""
    if not name:
        yield ()
    for end in range(1, len(name) + 1):
        yield from ((".".join(name[:end]), *rest) for rest in groupings(name[end:]))


FLAT = """
# what every job gets
parallelism.default: 4
execution.checkpointing.interval: 10 s
pipeline.object-reuse: true
classes: [a, b]
rest.address: "::1"
state.backend.type:
"""
NESTED = """
parallelism: {default: 4}
execution:
  checkpointing:
    interval: 10 s
pipeline:
  object-reuse: true
classes:
  - a
  - b
rest:
  address: '::1'
"""
READ = {
    "parallelism.default": "4",
    "execution.checkpointing.interval": "10 s",
    "pipeline.object-reuse": "true",
    "classes": "a;b",
    "rest.address": "::1",
}


class TestTheFile:
    @pytest.mark.parametrize("text", [FLAT, NESTED], ids=["flat", "nested"])
    @pytest.mark.parametrize("name", ["penstock-conf.yaml", "config.yaml"])
    def test_flat_and_nested_yaml_mean_the_same(self, tmp_path: Path, text: str, name: str) -> None:
        written(tmp_path, text, name)
        assert values(tmp_path) == READ

    @settings(deadline=None)
    @given(
        st.dictionaries(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple), WORDS, max_size=6),
        st.data(),
    )
    def test_a_name_may_be_nested_at_any_of_its_dots(
        self, settings: dict[tuple[str, ...], str], data: st.DataObject
    ) -> None:
        leaves = {n: v for n, v in settings.items() if not any(n != o and n == o[: len(n)] for o in settings)}
        text: dict[str, Any] = {}
        for name, value in leaves.items():
            parts = data.draw(st.sampled_from(list(groupings(name))))
            place = text
            for part in parts[:-1]:
                place = place.setdefault(part, {})
            place[parts[-1]] = value
        found = load_configuration([], NOTHING, {"PENSTOCK_PROPERTIES": yaml.safe_dump(text)})
        assert {name: held.value for name, held in found.items()} == {".".join(n): v for n, v in leaves.items()}

    def test_flinks_old_file_takes_a_line_as_it_is(self, tmp_path: Path) -> None:
        written(
            tmp_path,
            "env.java.opts: -Da=b -Dc: d  # why\n\n# nothing\nstate.backend:\nparallelism.default: 3\n",
            "flink-conf.yaml",
        )
        assert values(tmp_path) == {"env.java.opts": "-Da=b -Dc: d", "parallelism.default": "3"}

    def test_values_stay_the_text_that_was_written(self, tmp_path: Path) -> None:
        written(tmp_path, "a: 0123\nb: 10:30\nc: on\nd: 1e3\ne: 2026-01-01\n")
        assert values(tmp_path) == {"a": "0123", "b": "10:30", "c": "on", "d": "1e3", "e": "2026-01-01"}

    @pytest.mark.parametrize("text", ["", "# only a comment\n"])
    def test_an_empty_file_sets_nothing(self, tmp_path: Path, text: str) -> None:
        written(tmp_path, text)
        assert values(tmp_path) == {}

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            ("penstock-conf.yaml", "a: [1", "is not valid YAML"),
            ("penstock-conf.yaml", "- a\n- b\n", "must hold a mapping of names to values, not a list"),
            ("flink-conf.yaml", "a: 1\nb=2\n", "line 2: write 'name: value', not 'b=2'"),
        ],
    )
    def test_a_broken_file_is_named(self, tmp_path: Path, name: str, text: str, said: str) -> None:
        path = written(tmp_path, text, name)
        with pytest.raises(ConfigurationError) as raised:
            load_configuration([], tmp_path, {})
        assert str(path) in str(raised.value) and said in str(raised.value)

    def test_penstocks_file_comes_before_flinks(self, tmp_path: Path) -> None:
        for name in ("flink-conf.yaml", "config.yaml", "penstock-conf.yaml"):
            written(tmp_path, f"pipeline.name: {name}\n", name)
        assert values(tmp_path) == {"pipeline.name": "penstock-conf.yaml"}


class TestWhereTheFileIs:
    def test_the_folder_of_the_variable_then_here_then_at_home(self, elsewhere: Path) -> None:
        variable = {"PENSTOCK_CONF_DIR": str(elsewhere / "conf")}
        assert find_file(variable) is None
        at_home = written(elsewhere / "home" / ".penstock", "", "config.yaml")
        assert find_file(variable) == at_home
        here = written(elsewhere / "here", "")
        assert find_file(variable) == here
        named = written(elsewhere / "conf", "", "config.yaml")
        assert find_file(variable) == named
        assert find_file({"FLINK_CONF_DIR": str(elsewhere / "conf")}) == named
        assert find_file({"FLINK_CONF_DIR": "/nowhere", **variable}) == named

    def test_a_config_yaml_in_the_working_directory_is_somebody_elses(self, elsewhere: Path) -> None:
        written(elsewhere / "here", "", "config.yaml")
        assert find_file({}) is None

    def test_a_folder_that_is_not_there_is_an_error(self, elsewhere: Path) -> None:
        with pytest.raises(ConfigurationError, match="the configuration folder '/nowhere' does not exist"):
            load_configuration([], None, {"PENSTOCK_CONF_DIR": "/nowhere"})


class TestTheEnvironment:
    def test_names_of_variables(self) -> None:
        assert option_name("PENSTOCK__PARALLELISM__DEFAULT") == "parallelism.default"
        assert option_name("PENSTOCK__REST__CLIENT__TOKEN") == "rest.client.token"
        assert option_name("PENSTOCK__spark__dynamicAllocation__enabled") == "spark.dynamicAllocation.enabled"
        assert option_name("PENSTOCK__SOME_THING__NEW") == "some-thing.new"

    @pytest.mark.parametrize("name", sorted(known_options()))
    def test_every_known_option_has_a_variable(self, name: str) -> None:
        if not name.startswith("$"):
            assert option_name(PREFIX + name.upper().replace(".", "__").replace("-", "_")) == name

    def test_several_settings_in_one_variable(self, tmp_path: Path) -> None:
        found = values(
            tmp_path, PENSTOCK_PROPERTIES="rest.port: 9000\npipeline:\n  name: x\n", FLINK_PROPERTIES="rest.port: 1"
        )
        assert found == {"rest.port": "9000", "pipeline.name": "x"}

    def test_the_variable_of_the_master_is_one_of_them(self, tmp_path: Path) -> None:
        written(tmp_path, "spark.master: yarn\n")
        found = load_configuration([], tmp_path, {"PENSTOCK_MASTER": "local[3]"})
        assert (found["spark.master"].value, found["spark.master"].origin) == (
            "local[3]",
            "environment PENSTOCK_MASTER",
        )


class TestOrder:
    def test_the_command_line_wins_over_the_environment_and_that_over_the_file(self, tmp_path: Path) -> None:
        path = written(tmp_path, "rest.port: 1\nrest.address: file\npipeline.name: file\n")
        variables = {"PENSTOCK__REST__PORT": "2", "PENSTOCK__REST__ADDRESS": "variable"}
        found = load_configuration(["rest.port=3"], tmp_path, variables)
        assert [(found[name].value, found[name].origin) for name in ("rest.port", "rest.address", "pipeline.name")] == [
            ("3", COMMAND_LINE),
            ("variable", "environment PENSTOCK__REST__ADDRESS"),
            ("file", str(path)),
        ]

    def test_a_switch_wins_over_d(self, tmp_path: Path) -> None:
        found = load_configuration(["parallelism.default=3", "pipeline.name=x"], tmp_path, {})
        assert found.and_then({"parallelism.default": 5, "pipeline.name": None}).configuration().to_dict() == {
            "parallelism.default": "5",
            "pipeline.name": "x",
        }

    def test_a_later_place_wins_under_any_of_an_options_names(self, tmp_path: Path) -> None:
        written(tmp_path, "state.backend.type: rocksdb\n")
        assert values(tmp_path, "state.backend=hashmap") == {"state.backend": "hashmap"}

    def test_within_one_place_the_preferred_name_wins(self, tmp_path: Path) -> None:
        found = load_configuration(["state.backend.type=rocksdb", "state.backend=hashmap"], tmp_path, {})
        assert found.value("state.backend.type") == found.value("state.backend") == "rocksdb"

    @settings(deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from(sorted(known_options())), st.integers()), max_size=4),
        st.lists(st.tuples(st.sampled_from(sorted(known_options())), st.integers()), max_size=4),
    )
    def test_what_was_said_last_holds(self, first: list[tuple[str, int]], second: list[tuple[str, int]]) -> None:
        variable = "\n".join(f"{name}: {value}" for name, value in dict(first).items())
        options = [f"{name}={value}" for name, value in second]
        found = load_configuration(options, NOTHING, {"PENSTOCK_PROPERTIES": variable})
        for place in (dict(first), dict(second)):
            for name, value in place.items():
                option = known_options()[name]
                said = [dict(second).get(n) for n in (option.name, *option.others) if n in dict(second)]
                said += [dict(first).get(n) for n in (option.name, *option.others) if n in dict(first)]
                assert found.value(name) == str(said[0]), value


class TestWhatHolds:
    def test_an_option_that_nobody_set_has_its_default(self, tmp_path: Path) -> None:
        found = load_configuration([], tmp_path, {})
        held = found.find("rest.port")
        assert held is not None and (held.value, held.origin) == ("8081", DEFAULT)
        assert found.value("parallelism.default") == str(len(os.sched_getaffinity(0)))
        assert found.find("pipeline.name") is None
        assert found.find("no.such.thing") is None

    def test_everything_that_holds_is_listed_once_and_in_order(self, tmp_path: Path) -> None:
        listed = load_configuration(["state.backend=rocksdb", "zzz=1"], tmp_path, {}).with_defaults()
        names = [setting.name for setting in listed]
        assert names == sorted(set(names))
        assert "state.backend" in names and "state.backend.type" not in names and "zzz" in names

    def test_names_without_effect_are_warned_of_once(self, tmp_path: Path, fresh_warnings: None) -> None:
        options = ["paralelism.default=2", "akka.ask.timeout=1 s", "my.own=1", "spark.x=1", "rest.port=1"]
        (typo, without_effect, unknown) = load_configuration(options, tmp_path, {}).new_warnings()
        assert typo == "there is no option 'paralelism.default' (command line); did you mean 'parallelism.default'?"
        assert without_effect.startswith("option 'akka.ask.timeout' (command line) has no effect: there is no Akka")
        assert unknown == "no part of Penstock reads an option 'my.own' (command line)"
        assert load_configuration([*options, "my.other=2"], tmp_path, {}).new_warnings() == [
            "no part of Penstock reads an option 'my.other' (command line)"
        ]

    def test_options_of_other_parts_are_known(self, tmp_path: Path, fresh_warnings: None) -> None:
        options = [
            "table.exec.mini-batch.size=10",
            "sql-gateway.endpoint.rest.port=8083",
            "sql-gateway.session.max-num=3",
            "sql-client.verbose=true",
            "taskmanager.numberOfTaskSlots=4",
            "metrics.reporter.prom.port=9250",
        ]
        assert load_configuration(options, tmp_path, {}).new_warnings() == []
        (irrelevant,) = load_configuration(["table.exec.sort.max-num-file-handles=9"], tmp_path, {}).new_warnings()
        assert "each of its values gives the same rows" in irrelevant

    @pytest.mark.parametrize("option", ["nothing", "=1"])
    def test_an_option_without_name_or_value_is_refused(self, tmp_path: Path, option: str) -> None:
        with pytest.raises(ConfigurationError, match="-D must be given as name=value"):
            load_configuration([option], tmp_path, {})
