/** One job: its head with what can be done to it, and the tabs below. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useOnce, usePoll } from "../api";
import { duration, moment } from "../format";
import { type Samples, begin, sample } from "../history";
import { Badge, Copy, Empty, PageTitle, Problem } from "../parts/basics";
import { Tabs, to } from "../router";
import { type Activity, type ActivityHistory, type Exceptions, type Job, isOver } from "../types";
import { CheckpointsTab } from "./checkpoints";
import { ConfigurationTab } from "./configuration";
import { ExceptionsTab } from "./exceptions";
import { GraphTab } from "./job-graph";
import { JobMetricsTab } from "./job-metrics";
import { JobActions } from "./job-actions";
import { LogsTab } from "./logs";
import { StateTab } from "./state";
import { TimelineTab } from "./timeline";

export interface TabProps {
  job: Job;
  activity: Activity | undefined;
  rest: string[];
}

const TABS: Record<string, [title: string, tab: (props: TabProps) => ComponentChildren]> = {
  graph: ["Graph", GraphTab],
  checkpoints: ["Checkpoints", CheckpointsTab],
  exceptions: ["Exceptions", ExceptionsTab],
  metrics: ["Metrics", JobMetricsTab],
  timeline: ["Timeline", TimelineTab],
  state: ["State", StateTab],
  logs: ["Logs", LogsTab],
  configuration: ["Configuration", ConfigurationTab],
};

export function JobPage({ id, rest }: { id: string; rest: string[] }) {
  const answer = usePoll<Job>(`jobs/${id}`);
  const job = answer.data;
  const over = job !== undefined && isOver(job.state);
  const { data: activity } = usePoll<Activity>(over ? null : `jobs/${id}/activity`);
  const { data: before } = useOnce<Activity>(`jobs/${id}/activity?history=true`);
  useEffect(() => {
    if (before?.history !== undefined) begin(`activity ${id}`, samplesOf(before.history));
  }, [before]);
  useEffect(() => {
    if (activity !== undefined) remember(id, activity);
  }, [activity]);
  if (job === undefined) return <Missing id={id} error={answer.error?.status === 404 ? answer.error.message : ""} />;
  const [tab = "graph", ...deeper] = rest;
  const Tab = (TABS[tab] ?? TABS["graph"]!)[1];
  return (
    <>
      <Head job={job} activity={activity} />
      <JobTabs job={job} current={tab in TABS ? tab : "graph"} />
      <Tab job={job} activity={over ? undefined : activity} rest={deeper} />
    </>
  );
}

function Missing({ id, error }: { id: string; error: string }) {
  return (
    <>
      <PageTitle title="Job">Job</PageTitle>
      {error === "" ? (
        <div class="loading" role="status">
          <span class="hidden">Loading</span>
        </div>
      ) : (
        <Empty title="This job is not known here.">
          <p>
            {error} Jobs that have ended are forgotten after a while. <a href={to("jobs")}>All jobs</a>
          </p>
          <code>{id}</code>
        </Empty>
      )}
    </>
  );
}

const NAMES: Record<string, string> = {
  "records-in-per-second": "in",
  "records-out-per-second": "out",
  busy: "busy",
  "back-pressured": "held",
  "watermark-lag": "lag",
};

/** What the server has sampled, in the form of our own samples. */
function samplesOf(history: ActivityHistory): Samples {
  const lines: Samples["lines"] = {};
  for (const [vertex, figures] of Object.entries(history.vertices)) {
    for (const [figure, values] of Object.entries(figures)) lines[`${NAMES[figure] ?? figure} ${vertex}`] = values;
  }
  return { times: history.times, lines };
}

/** Take samples for the plots. */
function remember(id: string, activity: Activity): void {
  const values: Record<string, number> = {};
  for (const vertex of activity.vertices) {
    values[`in ${vertex.id}`] = vertex["records-in-per-second"];
    values[`out ${vertex.id}`] = vertex["records-out-per-second"];
    values[`busy ${vertex.id}`] = vertex.busy;
    values[`held ${vertex.id}`] = vertex["back-pressured"];
    if (vertex.watermark !== null) values[`lag ${vertex.id}`] = activity.now - vertex.watermark;
  }
  sample(`activity ${id}`, activity.now, values);
}

function Head({ job, activity }: { job: Job; activity: Activity | undefined }) {
  const title = job.name || "Job";
  return (
    <div class="job-head">
      <div>
        <div class="job-title">
          <span class="crumbs">
            <a href={to("jobs")}>Jobs</a> /
          </span>
          <PageTitle title={title}>{title}</PageTitle>
          <Badge state={job.state} />
        </div>
        <p class="job-facts">
          <span>
            started {moment(job["start-time"])}, {isOver(job.state) ? "ran for" : "runs for"} {duration(job.duration)}
          </span>
          {job["job-type"] === "BATCH" && <span>BATCH</span>}
          {activity !== undefined && activity.attempt > 0 && (
            <span class="warn-text">
              {activity.attempt} {activity.attempt === 1 ? "restart" : "restarts"}
            </span>
          )}
          <span>
            <code>{job.jid}</code> <Copy text={job.jid} label="the job's id" />
          </span>
        </p>
        {job.state === "RESTARTING" && <NextAttempt activity={activity} />}
      </div>
      {!isOver(job.state) && <JobActions job={job} />}
    </div>
  );
}

function NextAttempt({ activity }: { activity: Activity | undefined }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const at = activity?.["restart-at"];
  return <Problem text={`The job failed and is started again${at ? ` in ${duration(Math.max(0, at - now))}` : ""}.`} />;
}

function JobTabs({ job, current }: { job: Job; current: string }) {
  const { data } = usePoll<Exceptions>(`jobs/${job.jid}/exceptions`);
  const failures = data?.exceptionHistory.entries.length ?? 0;
  const tabs = Object.entries(TABS).map(([id, [title]]): [string, ComponentChildren] => [
    id,
    id === "exceptions" && failures > 0 ? (
      <>
        {title} <span class="count">{failures}</span>
      </>
    ) : (
      title
    ),
  ]);
  return <Tabs label="Parts of the job" base={["jobs", job.jid]} tabs={tabs} current={current} />;
}
