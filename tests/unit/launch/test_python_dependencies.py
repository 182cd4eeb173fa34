"""What `add_python_file` does to the search path of the slots."""

from penstock.service.launch.python_dependencies import PythonDependencies


def test_the_later_of_two_modules_with_one_name_wins(tmp_path):
    dependencies = PythonDependencies()
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").write_text("")
        dependencies.add_file(str(tmp_path / folder / "module.py"))
    assert dependencies.search_path() == [str(tmp_path / "second"), str(tmp_path / "first")]
