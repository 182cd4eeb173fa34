/** All jobs, running and ended. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { usePoll } from "../api";
import { duration, moment, rate, short, words } from "../format";
import { Badge, Card, Empty, PageTitle, Shown } from "../parts/basics";
import { Shares } from "../parts/graph";
import { Table } from "../parts/table";
import { to } from "../router";
import { type JobActivity, type JobRow, isOver } from "../types";

interface Props {
  label: string;
  jobs: JobRow[];
  empty: ComponentChildren;
}

export function JobTable({ label, jobs, empty }: Props) {
  const live = jobs.some(job => !isOver(job.state));
  const { data } = usePoll<{ jobs: JobActivity[] }>(live ? "jobs/activity" : null);
  const known = useMemo(() => new Map((data?.jobs ?? []).map(one => [one.jid, one])), [data]);
  const of = (job: JobRow) => known.get(job.jid);
  return (
    <Table
      label={label}
      rows={jobs}
      id={job => job.jid}
      empty={empty}
      columns={[
        {
          title: "Name",
          cell: job => <a href={to("jobs", job.jid)}>{job.name || short(job.jid)}</a>,
          by: job => job.name,
        },
        { title: "State", cell: job => <Badge state={job.state} />, by: job => job.state },
        ...(live
          ? [
              {
                title: "Records",
                cell: (job: JobRow) => {
                  const activity = of(job);
                  return activity ? rate(activity["records-per-second"]) : "";
                },
                by: (job: JobRow) => of(job)?.["records-per-second"] ?? -1,
                number: true,
              },
              {
                title: "Busiest vertex",
                cell: (job: JobRow) => {
                  const activity = of(job);
                  return activity && <Shares activity={activity} />;
                },
                by: (job: JobRow) => of(job)?.busy ?? -1,
              },
              {
                title: "Checkpoint",
                cell: (job: JobRow) => {
                  const activity = of(job);
                  return activity?.["last-checkpoint"] ? since(activity.now - activity["last-checkpoint"]) : "–";
                },
                by: (job: JobRow) => of(job)?.["last-checkpoint"] ?? -1,
                number: true,
              },
              {
                title: "Restarts",
                cell: (job: JobRow) => {
                  const restarts = of(job)?.restarts ?? 0;
                  return restarts > 0 ? <span class="warn-text">{restarts}</span> : "";
                },
                by: (job: JobRow) => of(job)?.restarts ?? 0,
                number: true,
              },
            ]
          : []),
        { title: "Started", cell: job => moment(job["start-time"]), by: job => job["start-time"] },
        ...(jobs.some(job => isOver(job.state))
          ? [{ title: "Ended", cell: (job: JobRow) => moment(job["end-time"]), by: (job: JobRow) => job["end-time"] }]
          : []),
        { title: "Duration", cell: job => duration(job.duration), by: job => job.duration, number: true },
        { title: "Tasks", cell: job => <Tasks tasks={job.tasks} />, by: job => job.tasks["total"] ?? 0 },
        { title: "Id", cell: job => <code title={job.jid}>{short(job.jid)}</code>, by: job => job.jid },
      ]}
    />
  );
}

function since(millis: number): string {
  return millis < 1000 ? "just now" : `${duration(millis)} ago`;
}

/** How many subtasks are in which state. */
export function Tasks({ tasks }: { tasks: Record<string, number> }) {
  const found = Object.entries(tasks).filter(([state, number]) => number > 0 && state !== "total");
  return (
    <span class="tasks">
      {found.map(([state, number]) => (
        <span key={state} class={`task ${state.toLowerCase()}`} title={words(state)}>
          {number} <span class="task-word">{state.toLowerCase()}</span>
        </span>
      ))}
    </span>
  );
}

const KINDS: [id: string, title: string][] = [
  ["all", "All"],
  ["running", "Running"],
  ["ended", "Ended"],
  ["failed", "Failed"],
];

function fits(job: JobRow, kind: string): boolean {
  if (kind === "running") return !isOver(job.state);
  if (kind === "ended") return isOver(job.state);
  return kind === "all" || job.state === "FAILED";
}

export function JobsPage() {
  const answer = usePoll<{ jobs: JobRow[] }>("jobs/overview");
  const [kind, setKind] = useState("all");
  const [filter, setFilter] = useState("");
  const wanted = filter.trim().toLowerCase();
  return (
    <>
      <PageTitle title="Jobs">Jobs</PageTitle>
      <Card>
        <div class="row">
          <div class="choices" role="group" aria-label="Which jobs">
            {KINDS.map(([id, title]) => (
              <button key={id} type="button" aria-pressed={kind === id} onClick={() => setKind(id)}>
                {title}
              </button>
            ))}
          </div>
          <input
            type="search"
            aria-label="Name or id"
            placeholder="Name or id …"
            value={filter}
            onInput={event => setFilter(event.currentTarget.value)}
          />
        </div>
        <Shown answer={answer}>
          {({ jobs }) => (
            <JobTable
              label="Jobs"
              jobs={jobs
                .filter(
                  job => fits(job, kind) && (job.name.toLowerCase().includes(wanted) || job.jid.startsWith(wanted)),
                )
                .sort((one, other) => other["start-time"] - one["start-time"])}
              empty={<Empty title={jobs.length === 0 ? "There are no jobs." : "No job is like that."} />}
            />
          )}
        </Shown>
      </Card>
    </>
  );
}
