/** With what a job was started. */
import { useState } from "preact/hooks";
import { usePoll } from "../api";
import { Card, Empty, Shown } from "../parts/basics";
import { KeyValues } from "../parts/table";
import type { TabProps } from "./job";

interface JobConfig {
  "execution-config": {
    "restart-strategy": string;
    "job-parallelism": number;
    "object-reuse-mode": boolean;
    "user-config": Record<string, string>;
  };
}

export function ConfigurationTab({ job }: TabProps) {
  const config = usePoll<JobConfig>(`jobs/${job.jid}/config`, 30_000);
  return (
    <>
      <Card title="Execution">
        <Shown answer={config}>
          {({ "execution-config": told }) => (
            <KeyValues
              label="Execution"
              rows={[
                ["Restart strategy", told["restart-strategy"]],
                ["Parallelism", told["job-parallelism"]],
                ["Mode", job["job-type"]],
                ["Object reuse", told["object-reuse-mode"] ? "yes" : "no"],
              ]}
            />
          )}
        </Shown>
      </Card>
      <Card title="Parameters of the program">
        <Shown answer={config}>
          {({ "execution-config": told }) => {
            const own = Object.entries(told["user-config"]);
            return own.length === 0 ? (
              <Empty title="The program has set no global job parameters." />
            ) : (
              <KeyValues label="Parameters of the program" rows={own} />
            );
          }}
        </Shown>
      </Card>
      <Card title="Options">
        <Options path={`jobs/${job.jid}/jobmanager/config`} />
      </Card>
    </>
  );
}

/** Options and their values, with a filter. */
export function Options({ path }: { path: string }) {
  const answer = usePoll<{ key: string; value: string }[]>(path, 30_000);
  const [filter, setFilter] = useState("");
  const wanted = filter.toLowerCase();
  return (
    <Shown answer={answer}>
      {options =>
        options.length === 0 ? (
          <Empty title="No options were given." />
        ) : (
          <>
            <div class="row">
              <input
                type="search"
                placeholder="Name or value …"
                aria-label="Name or value of an option"
                value={filter}
                onInput={event => setFilter(event.currentTarget.value)}
              />
            </div>
            <KeyValues
              label="Options"
              rows={options
                .filter(({ key, value }) => `${key} ${value}`.toLowerCase().includes(wanted))
                .map(({ key, value }) => [key, value])}
            />
          </>
        )
      }
    </Shown>
  );
}
