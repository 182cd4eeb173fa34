/** Checkpoints and savepoints of a job: the latest, all that are known, their spread, and how they are taken. */
import { useEffect, useState } from "preact/hooks";
import { Watched, usePoll, useWatched } from "../api";
import { bytes, count, duration, moment, words } from "../format";
import { operate, triggered } from "../operations";
import { Badge, Card, Copy, Empty, Figure, Figures, Shown } from "../parts/basics";
import { Plot } from "../parts/plot";
import { KeyValues, Table } from "../parts/table";
import { Tabs } from "../router";
import { type Checkpoint, type Checkpoints, type CheckpointSubtasks, type Job, type Spread, isOver } from "../types";
import type { TabProps } from "./job";

const TABS: [string, string][] = [
  ["overview", "Overview"],
  ["history", "History"],
  ["summary", "Summary"],
  ["configuration", "Configuration"],
];

/** What the server has forgotten, and the page has seen before, is kept. */
const seen = new Map<string, Watched<Checkpoint[]>>();

function seenOf(job: string): Watched<Checkpoint[]> {
  const known = seen.get(job) ?? new Watched<Checkpoint[]>([]);
  seen.set(job, known);
  return known;
}

const MOST_SEEN = 500;

function remember(job: string, history: Checkpoint[]): void {
  const known = new Map(seenOf(job).value.map(one => [one.id, one]));
  for (const one of history) known.set(one.id, one);
  seenOf(job).set([...known.values()].sort((one, other) => other.id - one.id).slice(0, MOST_SEEN));
}

export function CheckpointsTab({ job, rest }: TabProps) {
  const answer = usePoll<Checkpoints>(`jobs/${job.jid}/checkpoints?history=200`);
  const [tab = "overview", chosen] = rest;
  const history = useWatched(seenOf(job.jid));
  useEffect(() => {
    if (answer.data !== undefined) remember(job.jid, answer.data.history);
  }, [answer.data]);
  const take = () =>
    operate(`Checkpoint of ${job.name}`, async () => {
      await triggered(`jobs/${job.jid}/checkpoints`, {});
      return { text: "The checkpoint is complete." };
    });
  return (
    <Card
      aside={
        !isOver(job.state) && (
          <button type="button" onClick={take}>
            Take a checkpoint now
          </button>
        )
      }
      title="Checkpoints"
    >
      <Tabs label="Parts of the checkpoints" base={["jobs", job.jid, "checkpoints"]} tabs={TABS} current={tab} />
      <Shown answer={answer}>
        {data => {
          if (tab === "configuration") return <Configuration job={job} />;
          if (data.counts["total"] === 0 && history.length === 0) {
            return <Empty title="No checkpoint has been taken yet." />;
          }
          if (tab === "history") return <History job={job} history={history} chosen={Number(chosen)} />;
          if (tab === "summary") return <Summary data={data} />;
          return <OverviewPart data={data} history={history} />;
        }}
      </Shown>
    </Card>
  );
}

// --- overview ---
function OverviewPart({ data, history }: { data: Checkpoints; history: Checkpoint[] }) {
  const { counts, latest } = data;
  return (
    <>
      <Figures>
        <Figure label="Completed" value={counts["completed"]} />
        <Figure label="In progress" value={counts["in_progress"]} />
        <Figure
          label="Failed"
          value={<span class={counts["failed"]! > 0 ? "bad-text" : ""}>{counts["failed"]}</span>}
        />
        <Figure label="Restored" value={counts["restored"]} />
        <Figure label="Newest size" value={latest.completed ? bytes(latest.completed.state_size) : "–"} />
        <Figure label="Newest took" value={latest.completed ? duration(latest.completed.end_to_end_duration) : "–"} />
      </Figures>
      <SizePlots history={history} />
      <div class="latest">
        <Latest title="Latest checkpoint" checkpoint={latest.completed} />
        <Latest title="Latest savepoint" checkpoint={latest.savepoint} />
        <Latest title="Latest failure" checkpoint={latest.failed} />
        {latest.restored && (
          <div>
            <h3>Restored from</h3>
            <p>
              {latest.restored.is_savepoint ? "Savepoint" : "Checkpoint"} {latest.restored.id} at{" "}
              {moment(latest.restored.restore_timestamp)}
            </p>
            {latest.restored.external_path && <Path path={latest.restored.external_path} />}
          </div>
        )}
      </div>
    </>
  );
}

function Latest({ title, checkpoint }: { title: string; checkpoint: Checkpoint | null }) {
  if (checkpoint === null) return null;
  return (
    <div>
      <h3>{title}</h3>
      <p>
        Number {checkpoint.id} at {moment(checkpoint.trigger_timestamp)}
        {checkpoint.status === "COMPLETED" &&
          `, ${bytes(checkpoint.state_size)}, ${duration(checkpoint.end_to_end_duration)}`}
      </p>
      {checkpoint.failure_message && <p class="bad-text">{checkpoint.failure_message}</p>}
      {checkpoint.external_path && <Path path={checkpoint.external_path} />}
    </div>
  );
}

function Path({ path }: { path: string }) {
  if (path.startsWith("<")) return null;
  return (
    <p class="path">
      <code>{path}</code> <Copy text={path} label="the path" />
    </p>
  );
}

function SizePlots({ history }: { history: Checkpoint[] }) {
  const done = history.filter(one => one.status === "COMPLETED" && !one.is_savepoint).reverse();
  if (done.length < 2) return null;
  const times = done.map(one => one.trigger_timestamp);
  return (
    <div class="plots">
      <Plot
        title="Size"
        times={times}
        lines={[
          { label: "whole state", values: done.map(one => one.state_size) },
          { label: "newly written", values: done.map(one => one.checkpointed_size) },
        ]}
        format={bytes}
      />
      <Plot
        title="Duration"
        times={times}
        lines={[{ label: "end to end", values: done.map(one => one.end_to_end_duration) }]}
        format={duration}
      />
    </div>
  );
}

// --- history ---
function History({ job, history, chosen }: { job: Job; history: Checkpoint[]; chosen: number }) {
  const [open, setOpen] = useState<number | null>(Number.isFinite(chosen) ? chosen : null);
  return (
    <>
      <Table
        label="Checkpoints"
        rows={history}
        id={one => one.id}
        selected={open}
        columns={[
          {
            title: "Number",
            cell: one => (
              <button
                type="button"
                class="link"
                aria-expanded={open === one.id}
                onClick={() => setOpen(open === one.id ? null : one.id)}
              >
                {one.id}
              </button>
            ),
            by: one => one.id,
            number: true,
          },
          { title: "State", cell: one => <Badge state={one.status} />, by: one => one.status },
          { title: "Kind", cell: one => words(one.checkpoint_type), by: one => one.checkpoint_type },
          {
            title: "Acknowledged",
            cell: one => `${one.num_acknowledged_subtasks} of ${one.num_subtasks}`,
            by: one => one.num_acknowledged_subtasks,
            number: true,
          },
          { title: "Begun", cell: one => moment(one.trigger_timestamp), by: one => one.trigger_timestamp },
          {
            title: "Duration",
            cell: one => duration(one.end_to_end_duration),
            by: one => one.end_to_end_duration,
            number: true,
          },
          {
            title: "Written",
            cell: one => bytes(one.checkpointed_size),
            by: one => one.checkpointed_size,
            number: true,
          },
          { title: "Whole state", cell: one => bytes(one.state_size), by: one => one.state_size, number: true },
          { title: "Kept", cell: one => (one.status !== "COMPLETED" ? "–" : one.discarded ? "replaced" : "yes") },
        ]}
      />
      {open !== null && <Details key={open} job={job} number={open} />}
    </>
  );
}

function Details({ job, number }: { job: Job; number: number }) {
  const answer = usePoll<Checkpoint>(`jobs/${job.jid}/checkpoints/details/${number}`);
  const [vertex, setVertex] = useState<string | null>(null);
  const names = new Map(job.vertices.map(one => [one.id, one.name]));
  return (
    <section class="details" aria-label={`Checkpoint ${number}`}>
      <h3>Checkpoint {number}</h3>
      <Shown answer={answer}>
        {data => (
          <>
            {data.failure_message && <p class="bad-text">{data.failure_message}</p>}
            {data.external_path && <Path path={data.external_path} />}
            <Table
              label={`Vertices in checkpoint ${number}`}
              rows={Object.entries(data.tasks)}
              id={([id]) => id}
              selected={vertex}
              columns={[
                {
                  title: "Vertex",
                  cell: ([id]) => (
                    <button
                      type="button"
                      class="link long"
                      aria-expanded={vertex === id}
                      onClick={() => setVertex(vertex === id ? null : id)}
                    >
                      {names.get(id) ?? id}
                    </button>
                  ),
                  by: ([id]) => names.get(id) ?? id,
                },
                {
                  title: "Acknowledged",
                  cell: ([, task]) => `${task.num_acknowledged_subtasks} of ${task.num_subtasks}`,
                  number: true,
                },
                { title: "Last answer", cell: ([, task]) => moment(task.latest_ack_timestamp) },
                {
                  title: "Duration",
                  cell: ([, task]) => duration(task.end_to_end_duration),
                  by: ([, task]) => task.end_to_end_duration,
                  number: true,
                },
                {
                  title: "Written",
                  cell: ([, task]) => bytes(task.checkpointed_size),
                  by: ([, task]) => task.checkpointed_size,
                  number: true,
                },
                {
                  title: "Whole state",
                  cell: ([, task]) => bytes(task.state_size),
                  by: ([, task]) => task.state_size,
                  number: true,
                },
              ]}
            />
            {vertex !== null && <SubtaskDetails job={job} number={number} vertex={vertex} />}
          </>
        )}
      </Shown>
    </section>
  );
}

function SubtaskDetails({ job, number, vertex }: { job: Job; number: number; vertex: string }) {
  const answer = usePoll<CheckpointSubtasks>(`jobs/${job.jid}/checkpoints/details/${number}/subtasks/${vertex}`);
  return (
    <Shown answer={answer}>
      {({ subtasks }) => (
        <Table
          label="Subtasks in the checkpoint"
          rows={subtasks}
          id={task => task.index}
          columns={[
            { title: "Subtask", cell: task => task.index, by: task => task.index, number: true },
            { title: "State", cell: task => words(task.status) },
            { title: "Answered", cell: task => moment(task.ack_timestamp) },
            {
              title: "Duration",
              cell: task => duration(task.end_to_end_duration ?? -1),
              by: task => task.end_to_end_duration ?? -1,
              number: true,
            },
            {
              title: "While the job waits",
              cell: task => duration(task.checkpoint?.sync ?? -1),
              by: task => task.checkpoint?.sync ?? -1,
              number: true,
            },
            {
              title: "Beside it",
              cell: task => duration(task.checkpoint?.async ?? -1),
              by: task => task.checkpoint?.async ?? -1,
              number: true,
            },
            {
              title: "Written",
              cell: task => bytes(task.checkpointed_size ?? 0),
              by: task => task.checkpointed_size ?? 0,
              number: true,
            },
            {
              title: "Whole state",
              cell: task => bytes(task.state_size ?? 0),
              by: task => task.state_size ?? 0,
              number: true,
            },
          ]}
        />
      )}
    </Shown>
  );
}

// --- summary ---
const COLUMNS = ["min", "avg", "max", "p50", "p90", "p95", "p99", "p999"];
const SUMMARIES: [name: string, title: string, format: (value: number) => string][] = [
  ["end_to_end_duration", "Duration", duration],
  ["checkpointed_size", "Written", bytes],
  ["state_size", "Whole state", bytes],
];

function Summary({ data }: { data: Checkpoints }) {
  return (
    <Table
      label="Summary of completed checkpoints"
      rows={SUMMARIES}
      id={([name]) => name}
      columns={[
        { title: "Of completed checkpoints", cell: ([, title]) => title },
        ...COLUMNS.map(column => ({
          title: column,
          cell: ([name, , format]: (typeof SUMMARIES)[number]) => number(data.summary[name], column, format),
          number: true,
        })),
      ]}
    />
  );
}

function number(spread: Spread | undefined, column: string, format: (value: number) => string): string {
  const value = Number(spread?.[column]);
  return Number.isFinite(value) ? format(value) : "–";
}

// --- configuration ---
type Config = Record<string, unknown> & {
  mode: string;
  interval: number;
  timeout: number;
  min_pause: number;
  max_concurrent: number;
  externalization: { enabled: boolean; delete_on_cancellation: boolean };
  state_backend: string;
  checkpoint_storage: string;
  tolerable_failed_checkpoints: number;
};

function Configuration({ job }: { job: Job }) {
  const answer = usePoll<Config>(`jobs/${job.jid}/checkpoints/config`, 30_000);
  return (
    <Shown answer={answer}>
      {data => (
        <KeyValues
          label="How checkpoints are taken"
          rows={[
            ["Mode", words(data.mode)],
            ["Interval", data.interval > 1e15 ? "none: only when asked for" : duration(data.interval)],
            ["Timeout", duration(data.timeout)],
            ["Pause between two, at least", duration(data.min_pause)],
            ["At once, at most", count(data.max_concurrent)],
            ["Failures in a row that are tolerated", count(data.tolerable_failed_checkpoints)],
            ["State backend", data.state_backend],
            ["Storage", data.checkpoint_storage],
            [
              "After the job was cancelled",
              data.externalization.enabled && !data.externalization.delete_on_cancellation ? "kept" : "deleted",
            ],
          ]}
        />
      )}
    </Shown>
  );
}
