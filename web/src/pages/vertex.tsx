/** One vertex: its subtasks, event time, metrics, pressure and profile. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { usePoll } from "../api";
import { count, duration, moment, percent, watermark } from "../format";
import { Badge, Card, Empty, Figure, Figures, Shown } from "../parts/basics";
import { Flame } from "../parts/flame";
import { Shares } from "../parts/graph";
import { ioColumns } from "../parts/io-columns";
import { Table } from "../parts/table";
import { Tabs, to } from "../router";
import type { BackPressure, FlameNode, Job, MetricValue, Vertex, VertexActivity, VertexDetails } from "../types";
import { isOver } from "../types";
import { MetricBoard } from "./metric-board";

interface Props {
  job: Job;
  vertex: Vertex;
}

const TABS: Record<string, [title: string, tab: (props: Props) => ComponentChildren]> = {
  subtasks: ["Subtasks", Subtasks],
  backpressure: ["Back pressure", Pressure],
  watermarks: ["Watermarks", Watermarks],
  metrics: ["Metrics", Metrics],
  flamegraph: ["Flame graph", FlameGraph],
  accumulators: ["Accumulators", Accumulators],
};

interface PanelProps extends Props {
  activity: VertexActivity | undefined;
  tab: string;
}

export function VertexPanel({ job, vertex, activity, tab }: PanelProps) {
  const Tab = (TABS[tab] ?? TABS["subtasks"]!)[1];
  const tabs = Object.entries(TABS).map(([id, [title]]): [string, string] => [id, title]);
  return (
    <Card
      class="vertex-panel"
      title={vertex.name}
      aside={
        <a href={to("jobs", job.jid)} aria-label="Close this vertex">
          Close
        </a>
      }
    >
      <Figures compact>
        <Figure label="Parallelism" value={vertex.parallelism} note={`at most ${vertex.maxParallelism}`} />
        <Figure label="Records in" value={count(vertex.metrics["read-records"])} />
        <Figure label="Records out" value={count(vertex.metrics["write-records"])} />
        <Figure
          label="Busy"
          value={activity ? percent(activity.busy) : "–"}
          note={activity && vertex.parallelism > 1 ? `subtask ${activity["busiest-subtask"]}` : undefined}
        />
        <Figure label="Event time" value={watermark(activity?.watermark ?? null)} />
      </Figures>
      <Tabs label="Parts of the vertex" base={["jobs", job.jid, "graph", vertex.id]} tabs={tabs} current={tab} />
      <Tab key={vertex.id} job={job} vertex={vertex} />
    </Card>
  );
}

function base({ job, vertex }: Props): string {
  return `jobs/${job.jid}/vertices/${vertex.id}`;
}

function Subtasks(props: Props) {
  const answer = usePoll<VertexDetails>(base(props));
  return (
    <Shown answer={answer}>
      {({ subtasks }) => (
        <Table
          label="Subtasks"
          rows={subtasks}
          id={task => task.subtask}
          columns={[
            { title: "Subtask", cell: task => task.subtask, by: task => task.subtask, number: true },
            { title: "State", cell: task => <Badge state={task.status} />, by: task => task.status },
            ...ioColumns<VertexDetails["subtasks"][number]>(
              "read-records",
              "write-records",
              "read-bytes",
              "write-bytes",
            ),
            { title: "Attempt", cell: task => task.attempt + 1, by: task => task.attempt, number: true },
            {
              title: "Task manager",
              cell: task =>
                task["taskmanager-id"].startsWith("(") ? (
                  task["taskmanager-id"]
                ) : (
                  <a href={to("taskmanagers", task["taskmanager-id"])}>{task.endpoint}</a>
                ),
              by: task => task.endpoint,
            },
            { title: "Started", cell: task => moment(task["start-time"]), by: task => task["start-time"] },
            { title: "Duration", cell: task => duration(task.duration), by: task => task.duration, number: true },
          ]}
        />
      )}
    </Shown>
  );
}

function Pressure(props: Props) {
  const answer = usePoll<BackPressure>(`${base(props)}/backpressure`);
  return (
    <Shown answer={answer}>
      {data =>
        data.subtasks === undefined ? (
          <Empty title="Back pressure is measured while a job runs." />
        ) : (
          <>
            <p>
              Back pressure:{" "}
              <strong class={`pressure-${data["backpressure-level"]}`}>{data["backpressure-level"]}</strong>. It is the
              share of time in which a subtask had more to do, but had to wait for those that follow.
            </p>
            <Table
              label="Back pressure by subtask"
              rows={data.subtasks}
              id={task => task.subtask}
              columns={[
                { title: "Subtask", cell: task => task.subtask, by: task => task.subtask, number: true },
                {
                  title: "Busy, back-pressured, idle",
                  cell: task => <Shares activity={{ busy: task.busyRatio, "back-pressured": task.ratio }} />,
                },
                { title: "Busy", cell: task => percent(task.busyRatio), by: task => task.busyRatio, number: true },
                { title: "Back-pressured", cell: task => percent(task.ratio), by: task => task.ratio, number: true },
                { title: "Idle", cell: task => percent(task.idleRatio), by: task => task.idleRatio, number: true },
                { title: "Level", cell: task => task["backpressure-level"], by: task => task.ratio },
              ]}
            />
          </>
        )
      }
    </Shown>
  );
}

function Watermarks(props: Props) {
  const answer = usePoll<MetricValue[]>(`${base(props)}/watermarks`);
  if (props.job.plan.nodes.find(node => node.id === props.vertex.id)?.inputs === undefined) {
    return <Empty title="A source has no input, and so no watermark comes in." />;
  }
  return (
    <Shown answer={answer}>
      {values => {
        const rows = values.map(({ id, value }) => ({ subtask: Number(id.split(".")[0]), value: Number(value) }));
        const greatest = Math.max(...rows.map(row => row.value));
        return (
          <Table
            label="Watermarks"
            rows={rows}
            id={row => row.subtask}
            empty={<Empty title="There is no event time while a job does not run." />}
            columns={[
              { title: "Subtask", cell: row => row.subtask, by: row => row.subtask, number: true },
              { title: "Event time", cell: row => watermark(row.value), by: row => row.value },
              {
                title: "Behind the furthest",
                cell: row => (Math.abs(row.value) > 1e15 ? "–" : duration(greatest - row.value)),
                by: row => greatest - row.value,
                number: true,
              },
            ]}
          />
        );
      }}
    </Shown>
  );
}

function Metrics(props: Props) {
  if (isOver(props.job.state)) return <Empty title="Metrics are there while a job runs." />;
  const defaults = [
    "numRecordsInPerSecond",
    "numRecordsOutPerSecond",
    "busyTimeMsPerSecond",
    "backPressuredTimeMsPerSecond",
  ];
  return (
    <MetricBoard
      path={base(props)}
      subtasks={props.vertex.parallelism}
      board={`${props.job.name} ${props.vertex.id}`}
      defaults={defaults}
    />
  );
}

interface FlameAnswer {
  /** When samples were taken; less than 0 if there are none. */
  endTimestamp: number;
  data?: FlameNode | null;
}

const WITHOUT: Record<string, [title: string, text: string]> = {
  "-1": ["The job has ended.", "A profile can be taken while it runs."],
  "-2": ["Flame graphs are switched off here.", "The option rest.flamegraph.enabled says so."],
};

const KINDS: [id: string, title: string][] = [
  ["full", "All samples"],
  ["on_cpu", "At work"],
  ["off_cpu", "Waiting"],
];

function FlameGraph(props: Props) {
  const [kind, setKind] = useState("full");
  const [subtask, setSubtask] = useState("");
  const query = `type=${kind}${subtask === "" ? "" : `&subtaskindex=${subtask}`}`;
  const answer = usePoll<FlameAnswer>(`${base(props)}/flamegraph?${query}`, 3000);
  return (
    <>
      <div class="row">
        <div class="choices" role="group" aria-label="Which samples">
          {KINDS.map(([id, title]) => (
            <button key={id} type="button" aria-pressed={kind === id} onClick={() => setKind(id)}>
              {title}
            </button>
          ))}
        </div>
        <label>
          Subtask{" "}
          <select value={subtask} onChange={event => setSubtask(event.currentTarget.value)}>
            <option value="">all</option>
            {Array.from({ length: Math.min(props.vertex.parallelism, 1000) }, (_, index) => (
              <option key={index} value={index}>
                {index}
              </option>
            ))}
          </select>
        </label>
        {answer.data?.data && <span class="muted">sampled at {moment(answer.data.endTimestamp)}</span>}
      </div>
      {answer.error?.status === 404 ? (
        <Empty title="No profile can be taken.">{answer.error.message}</Empty>
      ) : (
        <Shown answer={answer}>
          {({ data, endTimestamp }) => {
            if (data != null) return <Flame key={subtask} root={data} />;
            const [title, text] = WITHOUT[endTimestamp] ?? [
              "Samples are being taken.",
              "They are shown in a few seconds.",
            ];
            return <Empty title={title}>{text}</Empty>;
          }}
        </Shown>
      )}
    </>
  );
}

interface Accumulated {
  "user-accumulators": { name: string; type: string; value: string }[];
}

function Accumulators(props: Props) {
  const answer = usePoll<Accumulated>(`${base(props)}/accumulators`);
  return (
    <Shown answer={answer}>
      {data => (
        <Table
          label="Accumulators"
          rows={data["user-accumulators"]}
          id={row => row.name}
          empty={<Empty title="The functions of this vertex count nothing themselves." />}
          columns={[
            { title: "Name", cell: row => <code>{row.name}</code>, by: row => row.name },
            { title: "Type", cell: row => row.type, by: row => row.type },
            { title: "Value", cell: row => row.value, by: row => Number(row.value), number: true },
          ]}
        />
      )}
    </Shown>
  );
}
