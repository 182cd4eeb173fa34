/** The figures of a job over time: throughput, busyness and event time by vertex, and metrics that are pinned. */
import { useMemo } from "preact/hooks";
import { useWatched } from "../api";
import { duration, percent, rate } from "../format";
import { type Samples, historyOf } from "../history";
import { Card, Empty } from "../parts/basics";
import { type Line, Plot } from "../parts/plot";
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
          <Plot key={kind} title={title} times={samples.times} lines={shown[kind]!} format={format} />
        ))}
    </div>
  );
}
