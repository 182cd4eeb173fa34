/** The service at a glance. */
import { usePoll } from "../api";
import { Card, Empty, Figure, Figures, PageTitle, Shown } from "../parts/basics";
import { to } from "../router";
import { type JobRow, type Overview, isOver } from "../types";
import { JobTable } from "./jobs";

export function OverviewPage() {
  const overview = usePoll<Overview>("overview");
  const jobs = usePoll<{ jobs: JobRow[] }>("jobs/overview");
  return (
    <>
      <PageTitle title="Overview">Overview</PageTitle>
      <Shown answer={overview}>
        {data => (
          <Figures>
            <Figure label="Running jobs" value={data["jobs-running"]} />
            <Figure
              label="Failed"
              value={<span class={data["jobs-failed"] > 0 ? "bad-text" : ""}>{data["jobs-failed"]}</span>}
            />
            <Figure label="Finished" value={data["jobs-finished"]} />
            <Figure label="Cancelled" value={data["jobs-cancelled"]} />
            <Figure label="Free slots" value={data["slots-available"]} note={`of ${data["slots-total"]}`} />
            <Figure label="Task managers" value={<a href={to("taskmanagers")}>{data.taskmanagers}</a>} />
          </Figures>
        )}
      </Shown>
      <Card title="Running jobs" aside={<a href={to("submit")}>Submit a program</a>}>
        <Shown answer={jobs}>
          {({ jobs }) => (
            <JobTable
              label="Running jobs"
              jobs={jobs.filter(job => !isOver(job.state))}
              empty={
                <Empty title="No job runs.">
                  Start one: <code>penstock run program.py</code>, or <a href={to("submit")}>submit a program here</a>.
                </Empty>
              }
            />
          )}
        </Shown>
      </Card>
      <Card title="Ended lately" aside={<a href={to("jobs")}>All jobs</a>}>
        <Shown answer={jobs}>
          {({ jobs }) => (
            <JobTable
              label="Ended jobs"
              jobs={jobs
                .filter(job => isOver(job.state))
                .sort((one, other) => other["end-time"] - one["end-time"])
                .slice(0, 8)}
              empty={<Empty title="No job has ended yet." />}
            />
          )}
        </Shown>
      </Card>
    </>
  );
}
