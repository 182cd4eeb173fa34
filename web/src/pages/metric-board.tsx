/** Metrics that a reader chooses: each pinned one is plotted over time, and stays pinned in this browser. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { useOnce, usePoll, useWatched } from "../api";
import { metric } from "../format";
import { historyOf, sample } from "../history";
import { Empty, Shown } from "../parts/basics";
import { Plot } from "../parts/plot";
import type { MetricValue } from "../types";

interface Props {
  /** The path of what has the metrics. */
  path: string;
  /** How many subtasks there are; without it, what has the metrics has no subtasks. */
  subtasks?: number;
  /** Under which name the choice is remembered. */
  board: string;
  defaults: string[];
}

const MOST_SUBTASKS = 16;
const AGGREGATES = ["sum", "max", "min", "avg"] as const;
type Way = (typeof AGGREGATES)[number] | "each";

function usePins(board: string, defaults: string[]) {
  const place = `penstock.pins.${board}`;
  const [pins, setPins] = useState<string[]>(() => {
    const kept = localStorage.getItem(place);
    return kept === null ? defaults : (JSON.parse(kept) as string[]);
  });
  const change = (next: string[]) => {
    setPins(next);
    localStorage.setItem(place, JSON.stringify(next));
  };
  return { pins, change };
}

/** What is added up over subtasks; of shares and times it is the greatest that matters. */
function usual(name: string): Way {
  return /^(num|[^.]*\.num)/.test(name.split(".").pop() ?? name) ? "sum" : "max";
}

export function MetricBoard({ path, subtasks, board, defaults }: Props) {
  const names = useOnce<MetricValue[]>(subtasks === undefined ? `${path}/metrics` : `${path}/subtasks/metrics`);
  const { pins, change } = usePins(board, defaults);
  const [filter, setFilter] = useState("");
  const known = useMemo(() => (names.data ?? []).map(one => one.id), [names.data]);
  const wanted = filter.toLowerCase();
  const offered = known.filter(name => !pins.includes(name) && name.toLowerCase().includes(wanted));
  return (
    <Shown answer={names}>
      {() => (
        <div class="board">
          <details class="picker" open={!pins.some(name => known.includes(name))}>
            <summary>Choose metrics ({offered.length} more)</summary>
            <input
              type="search"
              placeholder="Name …"
              aria-label="Name of a metric"
              value={filter}
              onInput={event => setFilter(event.currentTarget.value)}
            />
            <ul class="offered" tabIndex={0} aria-label="Metrics that can be pinned">
              {offered.slice(0, 200).map(name => (
                <li key={name}>
                  <button type="button" class="quiet" onClick={() => change([...pins, name])}>
                    + {name}
                  </button>
                </li>
              ))}
            </ul>
          </details>
          {known.length === 0 && <Empty title="There are no metrics here at this moment." />}
          <div class="plots">
            {pins
              .filter(name => known.includes(name))
              .map(name => (
                <Pinned
                  key={name}
                  name={name}
                  path={path}
                  subtasks={subtasks}
                  onUnpin={() => change(pins.filter(other => other !== name))}
                />
              ))}
          </div>
        </div>
      )}
    </Shown>
  );
}

interface PinnedProps {
  name: string;
  path: string;
  subtasks: number | undefined;
  onUnpin: () => void;
}

function query({ name, path, subtasks }: PinnedProps, way: Way): string {
  const id = encodeURIComponent(name);
  if (subtasks === undefined) return `${path}/metrics?get=${id}`;
  if (way !== "each") return `${path}/subtasks/metrics?get=${id}&agg=${way}`;
  const each = Array.from({ length: Math.min(subtasks, MOST_SUBTASKS) }, (_, index) => `${index}.${id}`);
  return `${path}/metrics?get=${each.join(",")}`;
}

function Pinned(props: PinnedProps) {
  const { name, subtasks, onUnpin } = props;
  const [way, setWay] = useState<Way>(() => usual(name));
  const wanted = query(props, way);
  const answer = usePoll<MetricValue[]>(wanted);
  useEffect(() => {
    const values = (answer.data ?? []).map(one => [one.id, valueOf(one, way)] as const);
    const numbers = values.filter(([, value]) => Number.isFinite(value));
    if (numbers.length > 0) sample(wanted, answer.at, Object.fromEntries(numbers));
  }, [answer.at]);
  const history = useWatched(historyOf(wanted));
  const text = answer.data?.[0]?.value;
  const lines = useMemo(
    () =>
      Object.entries(history.lines).map(([id, values]) => ({
        label: way === "each" ? `subtask ${id.split(".")[0]}` : subtasks === undefined ? "value" : way,
        values,
      })),
    [history],
  );
  return (
    <div class="pinned">
      <div class="pinned-tools">
        {subtasks !== undefined && (
          <select
            aria-label={`How ${name} is put together`}
            value={way}
            onChange={event => setWay(event.currentTarget.value as Way)}
          >
            {AGGREGATES.map(one => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
            <option value="each">
              {subtasks > MOST_SUBTASKS ? `first ${MOST_SUBTASKS} subtasks` : "each subtask"}
            </option>
          </select>
        )}
        <button type="button" class="quiet" aria-label={`Unpin ${name}`} onClick={onUnpin}>
          ✕
        </button>
      </div>
      {lines.length > 0 ? (
        <Plot
          title={name}
          times={history.times}
          lines={lines}
          format={value => metric(name, value)}
          full={/TimeMsPerSecond/.test(name) ? 1000 : 0}
        />
      ) : (
        <figure class="plot">
          <figcaption>{name}</figcaption>
          <p class="nothing">{text ?? "no value yet"}</p>
        </figure>
      )}
    </div>
  );
}

function valueOf(value: MetricValue, way: Way): number {
  return value.value === undefined ? Number(way === "each" ? NaN : value[way]) : Number(value.value);
}
