/** What a job holds in its queryable state: looked up by key, or browsed page by page. */
import { useEffect, useState } from "preact/hooks";
import { get, usePoll } from "../api";
import { count, moment } from "../format";
import { Card, Empty, Problem, Shown } from "../parts/basics";
import { Field } from "../parts/dialog";
import { Table } from "../parts/table";
import { type Job, type QueryableState, type StatePage, isOver } from "../types";
import type { TabProps } from "./job";

const PAGE = 50;

export function StateTab({ job }: TabProps) {
  const over = isOver(job.state);
  const answer = usePoll<{ states: QueryableState[] }>(over ? null : `jobs/${job.jid}/state`);
  if (over) return <Empty title="The state of a job can be looked at while it runs." />;
  return (
    <Shown answer={answer}>
      {({ states }) => (states.length === 0 ? <NoStates /> : <Browser job={job} states={states} />)}
    </Shown>
  );
}

function NoStates() {
  return (
    <Empty title="This job has no queryable state.">
      <p>
        Give a state a name with <code>descriptor.set_queryable("name")</code>, or keep the last record of each key with{" "}
        <code>keyed_stream.as_queryable_state("name")</code>. Then it can be looked at here.
      </p>
    </Empty>
  );
}

function Browser({ job, states }: { job: Job; states: QueryableState[] }) {
  const [name, setName] = useState(states[0]!.name);
  const [key, setKey] = useState("");
  const [page, setPage] = useState<StatePage | null>(null);
  const [pages, setPages] = useState(0);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const state = states.find(one => one.name === name) ?? states[0]!;

  const ask = async (query: string, number: number) => {
    setBusy(true);
    setError("");
    try {
      setPage(await get<StatePage>(`jobs/${job.jid}/state/${encodeURIComponent(name)}?${query}`));
      setPages(number);
    } catch (reason) {
      setError((reason as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const browse = () => void ask(`limit=${PAGE}`, 1);
  const next = () => void ask(`limit=${PAGE}&token=${encodeURIComponent(page!.next!)}`, pages + 1);
  const lookUp = (event: Event) => {
    event.preventDefault();
    void ask(`key=${encodeURIComponent(key)}`, 0);
  };
  useEffect(browse, [name]);
  return (
    <Card title="Queryable state">
      <div class="state-tools">
        <Field label="State" hint={`${state.kind} state of ${state.operator}`}>
          <select value={name} onChange={event => setName(event.currentTarget.value)}>
            {states.map(one => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </Field>
        <form class="row" onSubmit={lookUp}>
          <Field label="Key" hint={'JSON where it is JSON: 7 is a number, "7" a text, ["a", 1] a tuple.'}>
            <input value={key} required onInput={event => setKey(event.currentTarget.value)} />
          </Field>
          <button type="submit" class="primary" disabled={busy}>
            Look up
          </button>
        </form>
        <button type="button" disabled={busy} onClick={browse}>
          {pages === 0 && page !== null ? "Browse all keys" : "Read again"}
        </button>
      </div>
      {error !== "" && <Problem text={error} />}
      {page !== null && (
        <>
          <p class="muted" role="status">
            As it was at {moment(page.cut["processing-time"])} (epoch {count(page.cut.epoch)}
            {page.cut.attempt > 0 && `, attempt ${page.cut.attempt + 1}`}): {page.entries.length}{" "}
            {page.entries.length === 1 ? "key" : "keys"}
            {pages > 0 && `, page ${pages}`}.
          </p>
          <Entries page={page} />
          <div class="row">
            <button type="button" disabled={page.next === null || busy} onClick={next}>
              Next page
            </button>
          </div>
        </>
      )}
    </Card>
  );
}

/** On one line what fits there. */
function shown(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length < 120 ? line : JSON.stringify(value, null, 2);
}

function Entries({ page }: { page: StatePage }) {
  const rows = page.entries.map((entry, index) => ({ ...entry, index }));
  return (
    <Table
      label="Keys and values"
      rows={rows}
      id={row => row.index}
      empty={<Empty title="The state holds nothing yet." />}
      columns={[
        { title: "Key", cell: row => <code>{JSON.stringify(row.key)}</code>, by: row => JSON.stringify(row.key) },
        {
          title: "Value",
          cell: row => (row.found ? <code class="json">{shown(row.value)}</code> : <span class="muted">nothing</span>),
        },
      ]}
    />
  );
}
