/** Upload a program, look at its plan, run it. */
import { useRef, useState } from "preact/hooks";
import { refreshAll, send, usePoll } from "../api";
import { moment } from "../format";
import { operate } from "../operations";
import { Card, Empty, PageTitle, Problem, Shown } from "../parts/basics";
import { Dialog, Field } from "../parts/dialog";
import { Graph } from "../parts/graph";
import { Table } from "../parts/table";
import { go } from "../router";
import type { PlanNode, Program, WebConfig } from "../types";

export function SubmitPage() {
  const config = usePoll<WebConfig>("config", 60_000);
  return (
    <>
      <PageTitle title="Submit">Submit a program</PageTitle>
      <Shown answer={config}>{({ features }) => (features["web-submit"] ? <Programs /> : <NotHere />)}</Shown>
    </>
  );
}

function NotHere() {
  return (
    <Empty title="Programs are not taken through these pages here.">
      <p>
        On the server's machine: <code>penstock run -d program.py</code>. To allow it here, start the server with{" "}
        <code>-D web.submit.enable=true</code>; whoever can reach the page can then run programs, so set{" "}
        <code>security.rest.token.operate</code> as well.
      </p>
    </Empty>
  );
}

function Programs() {
  const answer = usePoll<{ files: Program[] }>("jars");
  const [chosen, setChosen] = useState<string | null>(null);
  const [leaving, setLeaving] = useState<Program | null>(null);
  const remove = (program: Program) => {
    setLeaving(null);
    operate(`Deleting ${program.name}`, async () => {
      await send("DELETE", `jars/${encodeURIComponent(program.id)}`);
      return { text: "The program is deleted. Jobs that it has started run on." };
    });
  };
  return (
    <>
      <Upload onDone={setChosen} />
      <Card title="Programs">
        <Shown answer={answer}>
          {({ files }) => (
            <>
              <Table
                label="Programs"
                rows={[...files].sort((one, other) => other.uploaded - one.uploaded)}
                id={program => program.id}
                selected={chosen}
                empty={<Empty title="No program has been uploaded yet." />}
                columns={[
                  {
                    title: "Name",
                    cell: program => (
                      <button
                        type="button"
                        class="link"
                        aria-expanded={chosen === program.id}
                        onClick={() => setChosen(chosen === program.id ? null : program.id)}
                      >
                        {program.name}
                      </button>
                    ),
                    by: program => program.name,
                  },
                  { title: "Uploaded", cell: program => moment(program.uploaded), by: program => program.uploaded },
                  { title: "Entry", cell: program => program.entry.map(entry => entry.name).join(", ") || "main" },
                  {
                    title: "Delete",
                    cell: program => (
                      <button
                        type="button"
                        class="quiet"
                        aria-label={`Delete ${program.name}`}
                        onClick={() => setLeaving(program)}
                      >
                        Delete
                      </button>
                    ),
                  },
                ]}
              />
              {files.some(program => program.id === chosen) && (
                <Run key={chosen} program={files.find(one => one.id === chosen)!} />
              )}
            </>
          )}
        </Shown>
      </Card>
      {leaving !== null && (
        <Dialog
          title={`Delete ${leaving.name}?`}
          action="Delete"
          danger
          onClose={() => setLeaving(null)}
          onConfirm={() => remove(leaving)}
        >
          <p>Jobs that it has started run on.</p>
        </Dialog>
      )}
    </>
  );
}

function Upload({ onDone }: { onDone: (id: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const upload = (file: File | undefined) => {
    if (file === undefined) return;
    operate(`Uploading ${file.name}`, async () => {
      const form = new FormData();
      form.append("jarfile", file, file.name);
      const { filename } = await send<{ filename: string }>("POST", "jars/upload", form);
      onDone(filename.split("/").pop()!);
      refreshAll();
      return { text: "The program is there: choose it below to run it." };
    });
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    upload(event.dataTransfer?.files[0]);
  };
  return (
    <Card>
      <div
        class={over ? "upload over" : "upload"}
        onDragOver={event => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <p>Drop a Python file, a zip or a wheel here, or</p>
        <label class="button">
          choose a file
          <input
            ref={input}
            class="hidden"
            type="file"
            accept=".py,.zip,.whl,.pex"
            onChange={() => {
              upload(input.current?.files?.[0]);
              if (input.current) input.current.value = "";
            }}
          />
        </label>
      </div>
    </Card>
  );
}

interface Form {
  entryClass: string;
  programArgs: string;
  parallelism: string;
  savepointPath: string;
  allowNonRestoredState: boolean;
  configuration: string;
}

const BLANK: Form = {
  entryClass: "",
  programArgs: "",
  parallelism: "",
  savepointPath: "",
  allowNonRestoredState: false,
  configuration: "",
};

/** What is sent: only what was filled in. */
function bodyOf(form: Form): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  if (form.entryClass) body["entryClass"] = form.entryClass;
  if (form.programArgs) body["programArgs"] = form.programArgs;
  if (form.parallelism) body["parallelism"] = Number(form.parallelism);
  if (form.savepointPath) body["savepointPath"] = form.savepointPath;
  if (form.allowNonRestoredState) body["allowNonRestoredState"] = true;
  const options = form.configuration
    .split("\n")
    .map(line => /^\s*([^:=\s]+)\s*[:=]\s*(.*?)\s*$/.exec(line))
    .filter(found => found !== null)
    .map(([, name, value]) => [name, value]);
  if (options.length > 0) body["flinkConfiguration"] = Object.fromEntries(options);
  return body;
}

function Run({ program }: { program: Program }) {
  const [form, setForm] = useState(BLANK);
  const [plan, setPlan] = useState<PlanNode[] | null>(null);
  const [error, setError] = useState("");
  const path = `jars/${encodeURIComponent(program.id)}`;
  const set = (changes: Partial<Form>) => setForm({ ...form, ...changes });
  const look = async () => {
    setError("");
    try {
      const told = await send<{ plan: { nodes: PlanNode[] } }>("POST", `${path}/plan`, bodyOf(form));
      setPlan(told.plan.nodes);
    } catch (reason) {
      setError((reason as Error).message);
    }
  };
  const run = (event: Event) => {
    event.preventDefault();
    operate(`Starting ${program.name}`, async () => {
      const { jobid } = await send<{ jobid: string }>("POST", `${path}/run`, bodyOf(form));
      go("jobs", jobid);
      return { text: "The job has been started." };
    });
  };
  return (
    <form class="run" onSubmit={run} aria-label={`Run ${program.name}`}>
      <h3>Run {program.name}</h3>
      <div class="fields">
        <Field label="Arguments">
          <input value={form.programArgs} onInput={event => set({ programArgs: event.currentTarget.value })} />
        </Field>
        <Field label="Parallelism">
          <input
            type="number"
            min={1}
            value={form.parallelism}
            onInput={event => set({ parallelism: event.currentTarget.value })}
          />
        </Field>
        <Field label="Start from a savepoint">
          <input
            value={form.savepointPath}
            placeholder="file:///backups/savepoint-…"
            onInput={event => set({ savepointPath: event.currentTarget.value })}
          />
        </Field>
        <Field label="Entry" hint="module:function, if it is not the program's main">
          <input value={form.entryClass} onInput={event => set({ entryClass: event.currentTarget.value })} />
        </Field>
        <Field label="Options" hint="One in each line: name: value">
          <textarea
            rows={3}
            value={form.configuration}
            onInput={event => set({ configuration: event.currentTarget.value })}
          />
        </Field>
        <label class="check">
          <input
            type="checkbox"
            checked={form.allowNonRestoredState}
            onChange={event => set({ allowNonRestoredState: event.currentTarget.checked })}
          />
          Start also if the savepoint has state that the program does not take
        </label>
      </div>
      <div class="row">
        <button type="submit" class="primary">
          Run
        </button>
        <button type="button" onClick={() => void look()}>
          Show the plan
        </button>
      </div>
      {error !== "" && <Problem text={error} />}
      {plan !== null && <Graph nodes={plan} activities={new Map()} states={new Map()} bottleneck={null} />}
    </form>
  );
}
