/** What a job's driver has logged, and what its program prints. */
import { Card } from "../parts/basics";
import { Log } from "../parts/log";
import { Tabs } from "../router";
import type { TabProps } from "./job";

export function LogsTab({ job, rest }: TabProps) {
  const tab = rest[0] === "stdout" ? "stdout" : "log";
  return (
    <Card title="Logs">
      <Tabs
        label="Which log"
        base={["jobs", job.jid, "logs"]}
        tabs={[
          ["log", "Log"],
          ["stdout", "Standard output"],
        ]}
        current={tab}
      />
      <Log
        key={tab}
        path={`jobs/${job.jid}/${tab}`}
        name={`${job.jid}.${tab === "log" ? "log" : "out"}`}
        what={tab === "log" ? "The log of the job" : "The standard output of the job"}
      />
    </Card>
  );
}
