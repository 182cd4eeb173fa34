/** Figures as people read them. */
export function count(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < 10_000) return Number.isInteger(value) ? value.toLocaleString("en") : trimmed(value);
  const units = ["k", "M", "G", "T", "P"];
  let power = 0;
  for (value /= 1000; Math.abs(value) >= 999.5 && power < units.length - 1; power++) value /= 1000;
  return `${trimmed(value)} ${units[power]}`;
}

function trimmed(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && size < 0.01) return value.toExponential(1);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2).replace(/\.0+$|(\.\d*?)0+$/, "$1");
}

export function rate(value: number): string {
  return `${count(value)}/s`;
}

export function bytes(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let power = 0;
  while (Math.abs(value) >= 999.5 && power < units.length - 1) {
    value /= 1000;
    power++;
  }
  return `${power === 0 ? Math.round(value) : trimmed(value)} ${units[power]}`;
}

export function percent(share: number): string {
  return share > 0 && share < 0.005 ? "<1 %" : `${Math.round(share * 100)} %`;
}

export function duration(millis: number): string {
  if (!Number.isFinite(millis) || millis < 0) return "–";
  if (millis < 1000) return `${Math.round(millis)} ms`;
  const seconds = Math.floor(millis / 1000);
  if (seconds < 60) return `${(millis / 1000).toFixed(seconds < 10 ? 1 : 0)} s`;
  const parts: [number, string][] = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([number]) => number > 0);
  return parts
    .slice(first, first + 2)
    .filter(([number]) => number > 0)
    .map(([number, unit]) => `${number} ${unit}`)
    .join(" ");
}

const two = (number: number) => String(number).padStart(2, "0");

export function clock(millis: number): string {
  const when = new Date(millis);
  return `${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
}

export function day(millis: number): string {
  const when = new Date(millis);
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
}

/** A moment; the day is left out if it is today. */
export function moment(millis: number | null | undefined): string {
  if (millis == null || millis <= 0) return "–";
  return day(millis) === day(Date.now()) ? clock(millis) : `${day(millis)} ${clock(millis)}`;
}

/** Event time: from before the first watermark to after the last. */
export function watermark(value: number | null): string {
  if (value === null || value < -1e15) return "none yet";
  if (value > 1e15) return "the end";
  if (value >= 0 && value < 1e11) return `t = ${value.toLocaleString("en")}`;
  return moment(value);
}

export function short(id: string): string {
  return id.length > 12 ? id.slice(0, 8) : id;
}

export function words(state: string): string {
  return state.charAt(0) + state.slice(1).toLowerCase().replaceAll("_", " ");
}

/** A metric's value in the unit that its name tells of. */
export function metric(name: string, value: number): string {
  if (/watermark/i.test(name) && !/lag|drift/i.test(name)) return watermark(value);
  if (/bytes.*PerSecond/i.test(name)) return `${bytes(value)}/s`;
  if (/TimeMsPerSecond/.test(name)) return percent(value / 1000);
  if (/PerSecond/.test(name)) return rate(value);
  if (/bytes|size|memory/i.test(name)) return bytes(value);
  if (/time|duration|latency|lag|delay|uptime/i.test(name)) return duration(value);
  return count(value);
}
