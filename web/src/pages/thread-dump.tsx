/** What the threads of a process are doing at this moment. */
import { usePoll } from "../api";
import { Empty, Shown } from "../parts/basics";

interface Dump {
  threadInfos: { threadName: string; stringifiedThreadInfo: string }[];
}

export function ThreadDump({ path }: { path: string }) {
  const answer = usePoll<Dump>(path, 5000);
  if (answer.error?.status === 404 && answer.data === undefined) {
    return <Empty title="This server does not show threads." />;
  }
  return (
    <Shown answer={answer}>
      {({ threadInfos }) => (
        <>
          {threadInfos.map(({ threadName, stringifiedThreadInfo }, index) => (
            <details key={`${threadName} ${index}`} class="failure" open={index === 0}>
              <summary>{threadName}</summary>
              <pre class="traceback" tabIndex={0} aria-label={`Stack of ${threadName}`}>
                {stringifiedThreadInfo}
              </pre>
            </details>
          ))}
          {threadInfos.length === 0 && <Empty title="No thread was seen." />}
        </>
      )}
    </Shown>
  );
}
