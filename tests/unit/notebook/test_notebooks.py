"""A job in a real Jupyter kernel: the client shows itself, and the picture is drawn anew until the job ends."""

import nbformat
from nbclient import NotebookClient

START = """
import os, time
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import in_process

def hold(value):
    while value == 3 and not os.path.exists(os.environ["GO_ON"]):
        time.sleep(0.01)
    return value

in_this_process = in_process(epoch_records=1)
in_this_process.__enter__()
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
env.from_collection(range(4)).map(hold).name("Hold").discard()
job = env.execute_async("in a notebook")
"""
ASK = "print(sorted(job._repr_mimebundle_()), type(job.widget(0.05)).__name__)"
END = """
import threading
open(os.environ["GO_ON"], "w").close()
job.get_job_execution_result().result()
assert not [t for t in threading.enumerate() if t.name == "penstock widget" and (t.join(60), t.is_alive())[1]]
"""


def test_a_client_shows_itself_live(monkeypatch, tmp_path):
    monkeypatch.setenv("GO_ON", str(tmp_path / "go-on"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    cells = [nbformat.v4.new_code_cell(text) for text in (START, "job", ASK, END)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    _, shown, asked, _ = notebook.cells
    (output,) = [one for one in shown.outputs if one.output_type == "display_data"]
    # The last picture has taken the place of the first, below the cell whose value the client was.
    assert "is FINISHED" in output.data["text/plain"]
    assert "<svg" in output.data["text/html"] and "Hold" in output.data["text/html"]
    assert "['text/html', 'text/plain'] JobWidget" in "".join(one.get("text", "") for one in asked.outputs)
    assert [one.output_type for one in asked.outputs].count("display_data") == 1
