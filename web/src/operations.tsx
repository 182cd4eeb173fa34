/** Orders that take their time: they go on, and are reported on, whatever page the reader turns to meanwhile. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, Watched, get, refreshAll, send, useWatched } from "./api";
import { duration } from "./format";
import { Copy } from "./parts/basics";

interface Operation {
  id: number;
  title: string;
  began: number;
  state: "running" | "done" | "failed";
  text: string;
  /** What can be copied: the path of a savepoint. */
  result: string | null;
}

const operations = new Watched<Operation[]>([]);
let numbers = 0;

function change(id: number, changes: Partial<Operation>): void {
  operations.set(operations.value.map(one => (one.id === id ? { ...one, ...changes } : one)));
}

const STAYS = 8000;

function dismiss(id: number): void {
  operations.set(operations.value.filter(one => one.id !== id));
}

/** Carry out an order and tell how it goes. */
export function operate(title: string, work: () => Promise<{ text: string; result?: string }>): void {
  const id = ++numbers;
  const begun: Operation = { id, title, began: Date.now(), state: "running", text: "", result: null };
  operations.set([...operations.value, begun]);
  work().then(
    ({ text, result }) => {
      change(id, { state: "done", text, result: result ?? null });
      // What went well and leaves nothing to take along does not stay in the way.
      if (!result) setTimeout(() => dismiss(id), STAYS);
      refreshAll();
    },
    (error: unknown) => change(id, { state: "failed", text: error instanceof Error ? error.message : String(error) }),
  );
}

interface Outcome {
  status: { id: string };
  operation: { location?: string; "failure-cause"?: { "stack-trace": string } } | null;
}

/** Give an order that answers with an id, and ask under it until there is an outcome. */
export async function triggered(path: string, body: unknown, outcome = path): Promise<Outcome["operation"]> {
  const { "request-id": id } = await send<{ "request-id": string }>("POST", path, body);
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 500));
    try {
      const { status, operation } = await get<Outcome>(`${outcome}/${id}`);
      if (status.id !== "COMPLETED") continue;
      const cause = operation?.["failure-cause"];
      if (cause) throw new Error(cause["stack-trace"].replace(/^[\w.]+: /, ""));
      return operation;
    } catch (error) {
      if (error instanceof ApiError && error.status === 0) continue; // the server is away for a moment
      throw error;
    }
  }
}

export function Operations() {
  const all = useWatched(operations);
  const [, tick] = useState(0);
  const running = all.some(one => one.state === "running");
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => tick(now => now + 1), 500);
    return () => clearInterval(timer);
  }, [running]);
  return (
    <div class="operations" role="status" aria-live="polite">
      {all.map(one => (
        <div key={one.id} class={`operation ${one.state}`}>
          <div class="operation-head">
            <strong>{one.title}</strong>
            {one.state === "running" ? (
              <span class="muted">{duration(Date.now() - one.began)}</span>
            ) : (
              <button type="button" class="quiet" aria-label={`Dismiss: ${one.title}`} onClick={() => dismiss(one.id)}>
                ✕
              </button>
            )}
          </div>
          {one.state === "running" ? <progress aria-label={one.title} /> : <p>{one.text}</p>}
          {one.result !== null && (
            <p class="result">
              <code>{one.result}</code> <Copy text={one.result} label="the result" />
            </p>
          )}
        </div>
      ))}
    </div>
  );
}
