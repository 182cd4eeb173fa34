/** What a job's driver has logged, and what its program prints. */
import { useState } from "preact/hooks";
import { send, usePoll } from "../api";
import { operate } from "../operations";
import { Card } from "../parts/basics";
import { Log } from "../parts/log";
import { Tabs } from "../router";
import { type Job, isOver } from "../types";
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
      {!isOver(job.state) && <Levels job={job} />}
    </Card>
  );
}

const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/** How much loggers of the job say, which can be changed while it runs. */
function Levels({ job }: { job: Job }) {
  const path = `jobs/${job.jid}/log-levels`;
  const { data } = usePoll<{ levels: Record<string, string> }>(path, 10_000);
  const [logger, setLogger] = useState("");
  const [level, setLevel] = useState("DEBUG");
  if (data === undefined) return null;
  const set = (name: string, wanted: string) =>
    operate(`Level of ${name || "all loggers"}`, async () => {
      await send("PATCH", path, { levels: { [name]: wanted } });
      return { text: wanted === "" ? "It is as before." : `It is ${wanted} now, in the driver and all slots.` };
    });
  const submit = (event: Event) => {
    event.preventDefault();
    set(logger.trim(), level);
  };
  return (
    <details class="picker levels">
      <summary>Levels of loggers</summary>
      <form class="row" onSubmit={submit}>
        <input
          placeholder="Name, as in logging.getLogger(…)"
          aria-label="Name of a logger"
          value={logger}
          onInput={event => setLogger(event.currentTarget.value)}
        />
        <select aria-label="Level" value={level} onChange={event => setLevel(event.currentTarget.value)}>
          {LEVELS.map(one => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <button type="submit">Set</button>
      </form>
      <ul>
        {Object.entries(data.levels).map(([name, now]) => (
          <li key={name}>
            <code>{name || "all loggers"}</code>: {now}{" "}
            <button
              type="button"
              class="quiet"
              aria-label={`Take back the level of ${name}`}
              onClick={() => set(name, "")}
            >
              ✕
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
