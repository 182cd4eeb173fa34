/** The process that answers: its options, figures, logs. */
import { usePoll } from "../api";
import { bytes, moment } from "../format";
import { Card, Empty, PageTitle, Shown } from "../parts/basics";
import { Log } from "../parts/log";
import { KeyValues, Table } from "../parts/table";
import { Tabs } from "../router";
import { Options } from "./configuration";
import { MetricBoard } from "./metric-board";
import { ThreadDump } from "./thread-dump";

const TABS: [string, string][] = [
  ["configuration", "Configuration"],
  ["metrics", "Metrics"],
  ["log", "Log"],
  ["stdout", "Standard output"],
  ["files", "Log files"],
  ["threads", "Threads"],
];

const DEFAULTS = ["Status.JVM.CPU.Load", "Status.JVM.Memory.Heap.Used", "taskSlotsAvailable", "numRunningJobs"];

export function JobManagerPage({ tab = "configuration" }: { tab?: string | undefined }) {
  return (
    <>
      <PageTitle title="Job manager">Job manager</PageTitle>
      <Tabs label="Parts of the job manager" base={["jobmanager"]} tabs={TABS} current={tab} />
      {tab === "configuration" ? (
        <Configuration />
      ) : (
        <Card>
          {tab === "metrics" && <MetricBoard path="jobmanager" board="job manager" defaults={DEFAULTS} />}
          {tab === "log" && <Log path="jobmanager/log" name="jobmanager.log" what="The log" />}
          {tab === "stdout" && <Log path="jobmanager/stdout" name="jobmanager.out" what="The standard output" />}
          {tab === "files" && <Files />}
          {tab === "threads" && <ThreadDump path="jobmanager/thread-dump" />}
        </Card>
      )}
    </>
  );
}

interface Environment {
  jvm: { version: string; arch: string };
}

function Configuration() {
  const environment = usePoll<Environment>("jobmanager/environment", 60_000);
  return (
    <>
      <Card title="Process">
        <Shown answer={environment}>
          {({ jvm }) => (
            <KeyValues
              label="Process"
              rows={[
                ["Python", jvm.version],
                ["Machine", jvm.arch],
              ]}
            />
          )}
        </Shown>
      </Card>
      <Card title="Options">
        <Options path="jobmanager/config" />
      </Card>
    </>
  );
}

function Files() {
  const answer = usePoll<{ logs: { name: string; size: number; mtime: number }[] }>("jobmanager/logs");
  return (
    <Shown answer={answer}>
      {({ logs }) => (
        <Table
          label="Log files"
          rows={logs}
          id={file => file.name}
          empty={<Empty title="There are no log files." />}
          columns={[
            { title: "Name", cell: file => file.name, by: file => file.name },
            { title: "Size", cell: file => bytes(file.size), by: file => file.size, number: true },
            { title: "Written", cell: file => moment(file.mtime), by: file => file.mtime },
          ]}
        />
      )}
    </Shown>
  );
}
