/** The places where slots run. */
import { usePoll } from "../api";
import { bytes, short } from "../format";
import { Card, Empty, Figure, Figures, PageTitle, Shown } from "../parts/basics";
import { Log } from "../parts/log";
import { Table } from "../parts/table";
import { Tabs, to } from "../router";
import type { JobRow, TaskManager } from "../types";
import { MetricBoard } from "./metric-board";
import { ThreadDump } from "./thread-dump";

function memory(machine: TaskManager): string {
  const { physicalMemory, freeMemory } = machine.hardware;
  return physicalMemory > 0 ? `${bytes(physicalMemory - freeMemory)} of ${bytes(physicalMemory)}` : "–";
}

export function TaskManagersPage() {
  const answer = usePoll<{ taskmanagers: TaskManager[] }>("taskmanagers");
  return (
    <>
      <PageTitle title="Task managers">Task managers</PageTitle>
      <Card>
        <Shown answer={answer}>
          {({ taskmanagers }) => (
            <Table
              label="Task managers"
              rows={taskmanagers}
              id={machine => machine.id}
              empty={<Empty title="There are no task managers: no job runs." />}
              columns={[
                {
                  title: "Name",
                  cell: machine => (
                    <a class="long" href={to("taskmanagers", machine.id)}>
                      {machine.id}
                    </a>
                  ),
                  by: machine => machine.id,
                },
                {
                  title: "Slots",
                  cell: machine => machine.slotsNumber,
                  by: machine => machine.slotsNumber,
                  number: true,
                },
                { title: "Free", cell: machine => machine.freeSlots, by: machine => machine.freeSlots, number: true },
                {
                  title: "Cores",
                  cell: machine => machine.hardware.cpuCores,
                  by: machine => machine.hardware.cpuCores,
                  number: true,
                },
                { title: "Memory in use", cell: memory, by: machine => machine.hardware.physicalMemory, number: true },
                {
                  title: "Where",
                  cell: machine => machine.path.replace(/^\w+:\/\/([^/]*).*/, "$1"),
                  by: machine => machine.path,
                },
              ]}
            />
          )}
        </Shown>
      </Card>
    </>
  );
}

const TABS: [string, string][] = [
  ["overview", "Overview"],
  ["metrics", "Metrics"],
  ["log", "Log"],
  ["stdout", "Standard output"],
  ["threads", "Threads"],
];

export function TaskManagerPage({ id, tab = "overview" }: { id: string; tab?: string | undefined }) {
  const path = `taskmanagers/${encodeURIComponent(id)}`;
  const answer = usePoll<TaskManager>(path);
  return (
    <>
      <p class="crumbs">
        <a href={to("taskmanagers")}>Task managers</a> /
      </p>
      <PageTitle title={id}>{id}</PageTitle>
      {answer.error?.status === 404 ? (
        <Empty title="This task manager is gone.">
          It was there for a job that has ended or moved. <a href={to("taskmanagers")}>All task managers</a>
        </Empty>
      ) : (
        <>
          <Tabs label="Parts of the task manager" base={["taskmanagers", id]} tabs={TABS} current={tab} />
          <Card>
            {tab === "metrics" && (
              <MetricBoard
                path={path}
                board="task manager"
                defaults={["Status.JVM.CPU.Load", "Status.JVM.Memory.Heap.Used"]}
              />
            )}
            {tab === "log" && <Log path={`${path}/log`} name={`${id}.log`} what="The log" />}
            {tab === "stdout" && <Log path={`${path}/stdout`} name={`${id}.out`} what="The standard output" />}
            {tab === "threads" && <ThreadDump path={`${path}/thread-dump`} />}
            {tab === "overview" && <Shown answer={answer}>{machine => <Machine machine={machine} />}</Shown>}
          </Card>
        </>
      )}
    </>
  );
}

function Machine({ machine }: { machine: TaskManager }) {
  const { data } = usePoll<{ jobs: JobRow[] }>("jobs/overview");
  const names = new Map((data?.jobs ?? []).map(job => [job.jid, job.name]));
  const slots = new Map<string, number>();
  for (const { jobId } of machine.allocatedSlots ?? []) slots.set(jobId, (slots.get(jobId) ?? 0) + 1);
  return (
    <>
      <Figures>
        <Figure label="Slots" value={machine.slotsNumber} note={`${machine.freeSlots} free`} />
        <Figure label="Cores" value={machine.hardware.cpuCores} />
        <Figure label="Memory in use" value={memory(machine)} />
      </Figures>
      <Table
        label="Jobs on this task manager"
        rows={[...slots]}
        id={([job]) => job}
        empty={<Empty title="No job has a slot here." />}
        columns={[
          { title: "Job", cell: ([job]) => <a href={to("jobs", job)}>{names.get(job) ?? short(job)}</a> },
          { title: "Slots", cell: ([, number]) => number, number: true },
        ]}
      />
    </>
  );
}
