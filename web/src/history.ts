/** What figures were before now: samples that the page has taken since it was opened. */
import { Watched } from "./api";

export interface Samples {
  times: number[];
  lines: Record<string, (number | null)[]>;
}

const MOST = 1200;
const MOST_KEPT = 100;
const histories = new Map<string, Watched<Samples>>();

export function historyOf(name: string): Watched<Samples> {
  let known = histories.get(name);
  if (known === undefined) {
    if (histories.size >= MOST_KEPT) histories.delete(histories.keys().next().value as string);
    known = new Watched<Samples>({ times: [], lines: {} });
    histories.set(name, known);
  }
  return known;
}

/** Put what was before in front of what has been sampled here. */
export function begin(name: string, before: Samples): void {
  const history = historyOf(name);
  const { times, lines } = history.value;
  const first = times[0] ?? Infinity;
  const kept = before.times.filter(time => time < first).length;
  const names = new Set([...Object.keys(before.lines), ...Object.keys(lines)]);
  const next: Samples = { times: [...before.times.slice(0, kept), ...times], lines: {} };
  for (const line of names) {
    const older = before.lines[line]?.slice(0, kept) ?? new Array<null>(kept).fill(null);
    next.lines[line] = [...older, ...(lines[line] ?? new Array<null>(times.length).fill(null))];
  }
  history.set(next);
}

/** Add a sample, unless it is no newer than the last one. */
export function sample(name: string, time: number, values: Record<string, number>): void {
  const history = historyOf(name);
  const { times, lines } = history.value;
  if (times.length > 0 && time <= times[times.length - 1]!) return;
  const cut = times.length >= MOST ? 1 : 0;
  const names = new Set([...Object.keys(lines), ...Object.keys(values)]);
  const next: Samples = { times: [...times.slice(cut), time], lines: {} };
  for (const line of names) {
    const before = lines[line] ?? new Array<null>(times.length).fill(null);
    next.lines[line] = [...before.slice(cut), values[line] ?? null];
  }
  history.set(next);
}
