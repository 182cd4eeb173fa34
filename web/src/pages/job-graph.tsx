/** The graph of a job, a table of its vertices, and the vertex that was chosen. */
import { useMemo } from "preact/hooks";
import { bottleneck } from "../bottleneck";
import { duration, percent, rate, watermark } from "../format";
import { Badge, Card, Empty } from "../parts/basics";
import { Graph, Shares } from "../parts/graph";
import { ioColumns } from "../parts/io-columns";
import { Table } from "../parts/table";
import { go, to } from "../router";
import type { Job, Vertex, VertexActivity } from "../types";
import type { TabProps } from "./job";
import { Tasks } from "./jobs";
import { VertexPanel } from "./vertex";

export function GraphTab({ job, activity, rest }: TabProps) {
  const [chosen, tab] = rest;
  const activities = useMemo(() => new Map((activity?.vertices ?? []).map(one => [one.id, one])), [activity]);
  const states = useMemo(() => new Map(job.vertices.map(one => [one.id, one.status])), [job]);
  const slowest = useMemo(() => bottleneck(job.plan.nodes, activities), [job.plan, activities]);
  const vertex = job.vertices.find(one => one.id === chosen);
  if (job.vertices.length === 0) {
    return <Empty title="The job has no graph yet.">Its program is being started.</Empty>;
  }
  const choose = (id: string) => (id === chosen ? go("jobs", job.jid) : go("jobs", job.jid, "graph", id));
  return (
    <>
      <p class={slowest?.holds ? "verdict hot" : "verdict"} role="status">
        {verdict(job, slowest, activities)}
      </p>
      <Graph
        nodes={job.plan.nodes}
        activities={activities}
        states={states}
        bottleneck={slowest}
        selected={chosen}
        onSelect={choose}
      />
      {vertex !== undefined && (
        <VertexPanel job={job} vertex={vertex} activity={activities.get(vertex.id)} tab={tab ?? "subtasks"} />
      )}
      <Card title={`${job.vertices.length} ${job.vertices.length === 1 ? "vertex" : "vertices"}`}>
        <Vertices job={job} activities={activities} chosen={chosen} />
      </Card>
    </>
  );
}

function verdict(job: Job, slowest: ReturnType<typeof bottleneck>, activities: Map<string, VertexActivity>) {
  if (activities.size === 0) return job.state === "RUNNING" ? "The job is being deployed." : "The job does not run.";
  if (slowest === null) return "No operator is at its limit.";
  const name = job.vertices.find(one => one.id === slowest.id)?.name ?? slowest.id;
  return (
    <>
      <strong>{slowest.holds ? "Bottleneck: " : "Busiest: "}</strong>
      <a href={to("jobs", job.jid, "graph", slowest.id, "backpressure")}>{name}</a> {slowest.text}.
    </>
  );
}

interface VerticesProps {
  job: Job;
  activities: Map<string, VertexActivity>;
  chosen: string | undefined;
}

function Vertices({ job, activities, chosen }: VerticesProps) {
  const of = (vertex: Vertex) => activities.get(vertex.id);
  const live = activities.size > 0;
  return (
    <Table
      label="Vertices"
      rows={job.vertices}
      id={vertex => vertex.id}
      selected={chosen ?? null}
      columns={[
        {
          title: "Name",
          cell: vertex => (
            <a class="long" href={to("jobs", job.jid, "graph", vertex.id)} title={vertex.name}>
              {vertex.name}
            </a>
          ),
          by: vertex => vertex.name,
        },
        { title: "State", cell: vertex => <Badge state={vertex.status} />, by: vertex => vertex.status },
        ...(live
          ? [
              {
                title: "Busy",
                cell: (vertex: Vertex) => {
                  const activity = of(vertex);
                  return activity && <Shares activity={activity} />;
                },
                by: (vertex: Vertex) => of(vertex)?.busy ?? 0,
              },
              {
                title: "Back-pressured",
                cell: (vertex: Vertex) => percent(of(vertex)?.["back-pressured"] ?? 0),
                by: (vertex: Vertex) => of(vertex)?.["back-pressured"] ?? 0,
                number: true,
              },
              {
                title: "In",
                cell: (vertex: Vertex) => rate(of(vertex)?.["records-in-per-second"] ?? 0),
                by: (vertex: Vertex) => of(vertex)?.["records-in-per-second"] ?? 0,
                number: true,
              },
              {
                title: "Out",
                cell: (vertex: Vertex) => rate(of(vertex)?.["records-out-per-second"] ?? 0),
                by: (vertex: Vertex) => of(vertex)?.["records-out-per-second"] ?? 0,
                number: true,
              },
              {
                title: "Event time",
                cell: (vertex: Vertex) => watermark(of(vertex)?.watermark ?? null),
                by: (vertex: Vertex) => of(vertex)?.watermark ?? -Infinity,
              },
            ]
          : []),
        ...ioColumns<Vertex>("read-records", "write-records", "write-bytes"),
        { title: "Tasks", cell: vertex => <Tasks tasks={vertex.tasks} />, by: vertex => vertex.parallelism },
        { title: "Duration", cell: vertex => duration(vertex.duration), by: vertex => vertex.duration, number: true },
      ]}
    />
  );
}
