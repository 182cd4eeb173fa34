/** What happened when: states of the job, its vertices, checkpoints and failures on one axis. */
import type { ComponentChildren } from "preact";
import { usePoll } from "../api";
import { clock, duration, moment, words } from "../format";
import { Card, Empty } from "../parts/basics";
import { Table } from "../parts/table";
import { type Activity, type Checkpoints, type Exceptions, type Job, isOver } from "../types";
import type { TabProps } from "./job";

interface Span {
  from: number;
  to: number;
  state: string;
}

const MOST_ROWS = 60;

export function TimelineTab({ job }: TabProps) {
  const activity = usePoll<Activity>(`jobs/${job.jid}/activity`);
  const checkpoints = usePoll<Checkpoints>(`jobs/${job.jid}/checkpoints`);
  const exceptions = usePoll<Exceptions>(`jobs/${job.jid}/exceptions`);
  const begin = job["start-time"];
  const end = Math.max(isOver(job.state) ? job["end-time"] : job.now, begin + 1);
  const share = (time: number) => (100 * (Math.min(end, Math.max(begin, time)) - begin)) / (end - begin);
  const spans = statesOf(job, activity.data, end);
  const failures = exceptions.data?.exceptionHistory.entries ?? [];
  const taken = checkpoints.data?.history ?? [];
  return (
    <>
      <Card title="Timeline">
        <div
          class="timeline"
          role="img"
          aria-label={`The job from ${moment(begin)} to ${moment(end)}; the same is told below`}
        >
          <Row name="Job">
            {spans.map((span, index) => (
              <Bar key={index} span={span} share={share} />
            ))}
          </Row>
          {(taken.length > 0 || failures.length > 0) && (
            <Row name="Checkpoints, failures">
              {taken.map(one => (
                <span
                  key={one.id}
                  class={`mark-point ${one.is_savepoint ? "savepoint" : one.status.toLowerCase()}`}
                  style={{ left: `${share(one.trigger_timestamp)}%` }}
                  title={`${words(one.checkpoint_type)} ${one.id}: ${words(one.status)}`}
                />
              ))}
              {failures.map(one => (
                <span
                  key={one.timestamp}
                  class="mark-point failure-point"
                  style={{ left: `${share(one.timestamp)}%` }}
                  title={one.exceptionName}
                />
              ))}
            </Row>
          )}
          {job.vertices.slice(0, MOST_ROWS).map(vertex => (
            <Row key={vertex.id} name={vertex.name}>
              {vertex["start-time"] > 0 && (
                <Bar
                  span={{
                    from: vertex["start-time"],
                    to: vertex["end-time"] > 0 ? vertex["end-time"] : end,
                    state: vertex.status,
                  }}
                  share={share}
                />
              )}
            </Row>
          ))}
          <div class="axis">
            {[0, 0.25, 0.5, 0.75, 1].map(part => (
              <span key={part}>{clock(begin + part * (end - begin))}</span>
            ))}
          </div>
        </div>
        {job.vertices.length > MOST_ROWS && <p class="muted">The first {MOST_ROWS} vertices are shown.</p>}
      </Card>
      <Card title="States of the job">
        <Table
          label="States of the job"
          rows={spans}
          id={span => `${span.state} ${span.from}`}
          empty={<Empty title="Nothing has happened yet." />}
          columns={[
            { title: "State", cell: span => words(span.state) },
            { title: "From", cell: span => moment(span.from), by: span => span.from },
            {
              title: "For",
              cell: span => duration(span.to - span.from),
              by: span => span.to - span.from,
              number: true,
            },
          ]}
        />
      </Card>
    </>
  );
}

/** All changes of state, if they are known, else the last time that each state was entered. */
function statesOf(job: Job, activity: Activity | undefined, end: number): Span[] {
  const known = (activity?.changes ?? []).map(change => [change.state, change.timestamp] as const);
  const last = Object.entries(job.timestamps).filter(([state, time]) => time > 0 && state !== "INITIALIZING");
  const changes = (known.length > 0 ? known : last).toSorted((one, other) => one[1] - other[1]);
  return changes.map(([state, from], index) => ({ state, from, to: changes[index + 1]?.[1] ?? end }));
}

function Row({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="timeline-row">
      <span class="timeline-name" title={name}>
        {name}
      </span>
      <div class="timeline-track">{children}</div>
    </div>
  );
}

function Bar({ span, share }: { span: Span; share: (time: number) => number }) {
  const [left, right] = [share(span.from), share(span.to)];
  return (
    <span
      class={`timeline-bar state-${span.state.toLowerCase()}`}
      style={{ left: `${left}%`, width: `${Math.max(0.3, right - left)}%` }}
      title={`${words(span.state)}: ${moment(span.from)}, ${duration(span.to - span.from)}`}
    >
      {right - left > 12 ? words(span.state) : ""}
    </span>
  );
}
