/** A log file, followed while it grows. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, request } from "../api";
import { bytes } from "../format";
import { Empty, Problem, download } from "./basics";

const FIRST = 128 * 1024;
const MOST = 1024 * 1024;
const EVERY = 2000;

interface Tail {
  text: string;
  size: number;
  error: string;
}

function useTail(path: string, follow: boolean): Tail | null {
  const [tail, setTail] = useState<Tail | null>(null);
  const size = useRef(-1);
  useEffect(() => {
    size.current = -1;
    setTail(null);
  }, [path]);
  useEffect(() => {
    let going = true;
    let timer: number | undefined;
    const look = async () => {
      try {
        const offset = size.current < 0 ? -FIRST : size.current;
        const response = await request(`${path}?offset=${offset}`);
        const [now, text] = [Number(response.headers.get("x-log-size") ?? 0), await response.text()];
        if (!going) return;
        const anew = size.current < 0 || now < size.current; // a log that was cut begins anew
        setTail(before => ({ text: ((anew ? "" : (before?.text ?? "")) + text).slice(-MOST), size: now, error: "" }));
        size.current = now < size.current ? -1 : now;
      } catch (error) {
        if (!going) return;
        if (!(error instanceof ApiError && error.status === 0)) {
          setTail(before => ({
            text: before?.text ?? "",
            size: before?.size ?? 0,
            error: String((error as Error).message),
          }));
        }
      }
      if (going && follow) timer = window.setTimeout(() => void look(), EVERY);
    };
    void look();
    return () => {
      going = false;
      clearTimeout(timer);
    };
  }, [path, follow]);
  return tail;
}

const LEVEL = /\b(ERROR|CRITICAL|WARNING|WARN|INFO|DEBUG)\b/;

function tone(line: string): string {
  const found = LEVEL.exec(line.slice(0, 80))?.[1] ?? "";
  if (found === "ERROR" || found === "CRITICAL" || /^\w+(Error|Exception)\b/.test(line)) return "log-error";
  if (found.startsWith("WARN")) return "log-warn";
  return found === "DEBUG" ? "log-debug" : "";
}

export function Log({ path, name, what }: { path: string; name: string; what: string }) {
  const [follow, setFollow] = useState(true);
  const [filter, setFilter] = useState("");
  const tail = useTail(path, follow);
  const end = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (follow && end.current) end.current.scrollTop = end.current.scrollHeight;
  }, [tail?.text, follow, filter]);
  const lines = (tail?.text ?? "").split("\n");
  const wanted = filter.toLowerCase();
  const shown = wanted === "" ? lines : lines.filter(line => line.toLowerCase().includes(wanted));
  return (
    <div class="log">
      <div class="row">
        <input
          type="search"
          placeholder="Only lines with …"
          aria-label="Only lines with"
          value={filter}
          onInput={event => setFilter(event.currentTarget.value)}
        />
        <label class="check">
          <input type="checkbox" checked={follow} onChange={event => setFollow(event.currentTarget.checked)} /> Follow
        </label>
        <button type="button" onClick={() => void request(path).then(async all => download(name, await all.text()))}>
          Download
        </button>
        {tail !== null && <span class="muted">{bytes(tail.size)}</span>}
      </div>
      {tail?.error && <Problem text={tail.error} />}
      {tail !== null && tail.error === "" && tail.text === "" ? (
        <Empty title={`${what} has nothing in it yet.`} />
      ) : (
        <pre ref={end} class="log-lines" tabIndex={0} role="log" aria-label={what} aria-live="off">
          {shown.map((line, index) => (
            <div key={index} class={tone(line)}>
              {line || " "}
            </div>
          ))}
        </pre>
      )}
    </div>
  );
}
