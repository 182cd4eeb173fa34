/** Which vertex holds the job back, as far as figures tell. */
import type { PlanNode, VertexActivity } from "./types";
import { percent } from "./format";

export type Level = "idle" | "calm" | "busy" | "hot" | "held";

const HELD = 0.5;
const HOT = 0.8;
const BUSY = 0.5;
const WAITING = 0.1;

export function level(activity: VertexActivity | undefined): Level {
  if (activity === undefined) return "idle";
  if (activity.busy >= HOT) return "hot";
  if (activity["back-pressured"] >= HELD) return "held";
  if (activity.busy >= BUSY) return "busy";
  return activity.busy > 0.01 ? "calm" : "idle";
}

export const LEVEL_WORDS: Record<Level, string> = {
  idle: "idle",
  calm: "has time left",
  busy: "busy",
  hot: "at its limit",
  held: "waits for what follows",
};

export interface Bottleneck {
  id: string;
  /** Whether others wait for it already. */
  holds: boolean;
  text: string;
}

/** The busiest vertex, if it is busy enough to matter; of several, the one that others wait for. */
export function bottleneck(nodes: PlanNode[], activities: Map<string, VertexActivity>): Bottleneck | null {
  const inputs = new Map(nodes.map(node => [node.id, (node.inputs ?? []).map(input => input.id)]));
  const waiting = (id: string): number =>
    Math.max(0, ...(inputs.get(id) ?? []).map(above => activities.get(above)?.["back-pressured"] ?? 0));
  const candidates = [...activities.values()].filter(one => one.busy >= BUSY);
  if (candidates.length === 0) return null;
  const score = (one: VertexActivity) => one.busy + (waiting(one.id) >= WAITING ? 1 : 0);
  const found = candidates.reduce((best, one) => (score(one) > score(best) ? one : best));
  const share = waiting(found.id);
  if (share >= WAITING) {
    const text = `is busy ${percent(found.busy)} of the time, and what feeds it waits ${percent(share)}`;
    return { id: found.id, holds: true, text };
  }
  if (found.busy < HOT) return null;
  return { id: found.id, holds: false, text: `is busy ${percent(found.busy)} of the time; nothing waits for it yet` };
}
