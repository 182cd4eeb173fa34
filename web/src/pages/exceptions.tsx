/** Why attempts of a job failed: the user's traceback first. */
import { usePoll } from "../api";
import { moment } from "../format";
import { Card, Copy, Empty, Shown } from "../parts/basics";
import { to } from "../router";
import type { Exceptions, Failure, Job } from "../types";
import type { TabProps } from "./job";

export function ExceptionsTab({ job }: TabProps) {
  const answer = usePoll<Exceptions>(`jobs/${job.jid}/exceptions?maxExceptions=100`);
  return (
    <Card title="Exceptions">
      <Shown answer={answer}>
        {({ exceptionHistory: { entries, truncated } }) =>
          entries.length === 0 ? (
            <Empty title="Nothing has failed." />
          ) : (
            <>
              {entries.map((entry, index) => (
                <Entry key={entry.timestamp} job={job} failure={entry} open={index === 0} newest={index === 0} />
              ))}
              {truncated && <p class="muted">Older ones are not shown.</p>}
            </>
          )
        }
      </Shown>
    </Card>
  );
}

/** The failure behind one that only says that the job was given up. */
function cause(failure: Failure): Failure {
  return failure.concurrentExceptions?.[0] ?? failure;
}

function Entry({ job, failure, open, newest }: { job: Job; failure: Failure; open: boolean; newest: boolean }) {
  const told = cause(failure);
  const [head, traceback] = split(told.stacktrace);
  const vertex = job.vertices.find(one => told.taskName?.startsWith(one.name));
  return (
    <details class="failure" open={open}>
      <summary>
        <span class="failure-name">{told.exceptionName}</span>
        <span>{lastLine(told.stacktrace)}</span>
        <time class="muted">{moment(failure.timestamp)}</time>
      </summary>
      <p class="failure-facts">
        {newest && told !== failure && <strong class="bad-text">The job was not started again. </strong>}
        {told.taskName && (
          <>
            in {vertex ? <a href={to("jobs", job.jid, "graph", vertex.id)}>{told.taskName}</a> : told.taskName}
            {told.endpoint && ` on ${told.endpoint}`}{" "}
          </>
        )}
        <Copy text={told.stacktrace} label="the traceback" />
      </p>
      <p class="failure-head">{head}</p>
      {traceback !== "" && (
        <pre class="traceback" tabIndex={0} aria-label="Traceback">
          {traceback}
        </pre>
      )}
    </details>
  );
}

function split(text: string): [string, string] {
  const begin = text.indexOf("Traceback (most recent call last)");
  return begin < 0 ? [text, ""] : [text.slice(0, begin).trim(), text.slice(begin)];
}

function lastLine(text: string): string {
  const line = text.trimEnd().split("\n").pop() ?? "";
  return line.replace(/^[\w.]+: /, "").slice(0, 200);
}
