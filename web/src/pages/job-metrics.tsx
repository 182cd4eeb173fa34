/** The figures of a job over time: throughput, busyness and event time by vertex, and metrics that are pinned. */
import { useEffect, useMemo } from "preact/hooks";
import { usePoll, useWatched } from "../api";
import { duration, percent, rate } from "../format";
import { type Samples, historyOf, sample } from "../history";
import { Card, Empty } from "../parts/basics";
import { type Line, Plot } from "../parts/plot";
import { Table } from "../parts/table";
import { type Job, isOver } from "../types";
import type { TabProps } from "./job";
import { MetricBoard } from "./metric-board";

const MOST_LINES = 12;

export function JobMetricsTab({ job }: TabProps) {
  const over = isOver(job.state);
  return (
    <>
      <Card title={over ? "Before the end" : "By vertex"}>
        <Throughput job={job} />
      </Card>
      {!over && <Latency job={job} />}
      {!over && (
        <Card title="Of the job">
          <MetricBoard
            path={`jobs/${job.jid}`}
            board={job.name}
            defaults={["lastCheckpointDuration", "lastCheckpointSize", "numRestarts", "uptime"]}
          />
        </Card>
      )}
    </>
  );
}

/** Lines for those vertices that have most of something. */
function lines(job: Job, samples: Samples, kind: string): Line[] {
  const greatest = (id: string) => Math.max(0, ...(samples.lines[`${kind} ${id}`] ?? []).map(value => value ?? 0));
  return job.vertices
    .filter(vertex => samples.lines[`${kind} ${vertex.id}`] !== undefined && (kind !== "in" || greatest(vertex.id) > 0))
    .sort((one, other) => greatest(other.id) - greatest(one.id))
    .slice(0, MOST_LINES)
    .map(vertex => ({ label: vertex.name, values: samples.lines[`${kind} ${vertex.id}`]! }));
}

function Throughput({ job }: { job: Job }) {
  const samples = useWatched(historyOf(`activity ${job.jid}`));
  const shown = useMemo(
    () => Object.fromEntries(["in", "out", "busy", "held", "lag"].map(kind => [kind, lines(job, samples, kind)])),
    [samples],
  );
  if (samples.times.length === 0) {
    return (
      <Empty
        title={
          isOver(job.state) ? "Nothing is remembered of this job's figures." : "The first figures are on their way."
        }
      />
    );
  }
  const plots: [kind: string, title: string, format: (value: number) => string][] = [
    ["out", "Records out", rate],
    ["in", "Records in", rate],
    ["busy", "Busy", percent],
    ["held", "Back-pressured", percent],
    ["lag", "Event time behind the clock", duration],
  ];
  return (
    <div class="plots">
      {plots
        .filter(([kind]) => shown[kind]!.length > 0)
        .map(([kind, title, format]) => (
          <Plot
            key={kind}
            title={title}
            times={samples.times}
            lines={shown[kind]!}
            format={format}
            full={format === percent ? 1 : 0}
          />
        ))}
    </div>
  );
}

interface LatencyRow {
  source: string | null;
  operator: string;
  median?: number;
  p95?: number;
  p99?: number;
  max?: number;
}

/** How long markers are on their way, if the job sends any. */
function Latency({ job }: { job: Job }) {
  const answer = usePoll<{ latencies: LatencyRow[] }>(`jobs/${job.jid}/latency`);
  const name = `latency ${job.jid}`;
  useEffect(() => {
    const rows = (answer.data?.latencies ?? []).filter(row => row.p99 !== undefined);
    if (rows.length > 0) sample(name, answer.at, Object.fromEntries(rows.map(row => [labelOf(row), row.p99!])));
  }, [answer.at]);
  const samples = useWatched(historyOf(name));
  const lines = useMemo(
    () =>
      Object.entries(samples.lines)
        .map(([label, values]) => ({ label, values }))
        .slice(0, MOST_LINES),
    [samples],
  );
  const rows = answer.data?.latencies ?? [];
  if (rows.length === 0) return null;
  const columns = (["median", "p95", "p99", "max"] as const).map(title => ({
    title,
    cell: (row: LatencyRow) => duration(row[title] ?? -1),
    by: (row: LatencyRow) => row[title] ?? -1,
    number: true,
  }));
  return (
    <Card title="Latency">
      <div class="plots">
        <Plot title="99 of 100 markers are faster than" times={samples.times} lines={lines} format={duration} />
      </div>
      <Table
        label="Latency"
        rows={rows}
        id={labelOf}
        columns={[
          { title: "From", cell: row => row.source ?? "all sources", by: row => row.source ?? "" },
          { title: "To", cell: row => row.operator, by: row => row.operator },
          ...columns,
        ]}
      />
    </Card>
  );
}

function labelOf(row: LatencyRow): string {
  return `${row.source ?? "sources"} → ${row.operator}`;
}
