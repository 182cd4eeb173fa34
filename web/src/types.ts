/** The answers of the server, as far as these pages use them. */
export interface Overview {
  taskmanagers: number;
  "slots-total": number;
  "slots-available": number;
  "jobs-running": number;
  "jobs-finished": number;
  "jobs-cancelled": number;
  "jobs-failed": number;
  "flink-version": string;
  "penstock-version"?: string;
}

export interface WebConfig {
  "refresh-interval": number;
  features: { "web-submit": boolean; "web-cancel": boolean };
}

export interface JobRow {
  jid: string;
  name: string;
  jobType?: string;
  state: string;
  "start-time": number;
  "end-time": number;
  duration: number;
  "last-modification": number;
  tasks: Record<string, number>;
}

export interface Io {
  "read-bytes": number;
  "write-bytes": number;
  "read-records": number;
  "write-records": number;
  "accumulated-backpressured-time": number;
  "accumulated-idle-time": number;
  "accumulated-busy-time": number;
}

export interface Vertex {
  id: string;
  name: string;
  parallelism: number;
  maxParallelism: number;
  status: string;
  "start-time": number;
  "end-time": number;
  duration: number;
  tasks: Record<string, number>;
  metrics: Io;
}

export interface PlanNode {
  id: string;
  parallelism: number;
  description: string;
  inputs?: { num: number; id: string; ship_strategy: string }[];
}

export interface Job {
  jid: string;
  name: string;
  state: string;
  "job-type": string;
  "start-time": number;
  "end-time": number;
  duration: number;
  maxParallelism: number;
  now: number;
  timestamps: Record<string, number>;
  vertices: Vertex[];
  plan: { nodes: PlanNode[] };
}

export interface VertexActivity {
  id: string;
  "records-in": number;
  "records-out": number;
  "records-in-per-second": number;
  "records-out-per-second": number;
  "bytes-in-per-second": number;
  "bytes-out-per-second": number;
  /** Of the subtask that has most of it, from 0 to 1; idle of the one that has least. */
  busy: number;
  "back-pressured": number;
  idle: number;
  "busiest-subtask": number;
  watermark: number | null;
}

/** Of each vertex, one list for each figure. */
export interface ActivityHistory {
  times: number[];
  vertices: Record<string, Record<string, (number | null)[]>>;
}

export interface JobActivity {
  jid: string;
  "records-per-second": number;
  busy: number;
  "back-pressured": number;
  restarts: number;
  "last-checkpoint": number | null;
  now: number;
}

export interface Activity {
  history?: ActivityHistory;
  now: number;
  state: string;
  attempt: number;
  "restart-at": number | null;
  changes: { state: string; timestamp: number }[];
  vertices: VertexActivity[];
}

export interface Subtask {
  subtask: number;
  status: string;
  attempt: number;
  endpoint: string;
  "start-time": number;
  "end-time": number;
  duration: number;
  metrics: Io;
  "taskmanager-id": string;
}

export interface VertexDetails {
  id: string;
  name: string;
  parallelism: number;
  maxParallelism: number;
  now: number;
  subtasks: Subtask[];
  aggregated?: { metrics: Record<string, Record<string, number>> };
}

export interface BackPressure {
  status: string;
  "backpressure-level"?: string;
  subtasks?: {
    subtask: number;
    ratio: number;
    idleRatio: number;
    busyRatio: number;
    "backpressure-level": string;
  }[];
}

export interface MetricValue {
  id: string;
  value?: string;
  min?: number;
  max?: number;
  avg?: number;
  sum?: number;
}

export interface Checkpoint {
  id: number;
  status: string;
  is_savepoint: boolean;
  trigger_timestamp: number;
  latest_ack_timestamp: number;
  state_size: number;
  checkpointed_size: number;
  end_to_end_duration: number;
  num_subtasks: number;
  num_acknowledged_subtasks: number;
  checkpoint_type: string;
  external_path?: string;
  discarded?: boolean;
  failure_timestamp?: number;
  failure_message?: string | null;
  tasks: Record<string, Checkpoint>;
}

export type Spread = Record<string, number | string>;

export interface Checkpoints {
  counts: Record<string, number>;
  summary: Record<string, Spread>;
  latest: {
    completed: Checkpoint | null;
    savepoint: Checkpoint | null;
    failed: Checkpoint | null;
    restored: { id: number; restore_timestamp: number; is_savepoint: boolean; external_path: string | null } | null;
  };
  history: Checkpoint[];
}

export interface CheckpointSubtasks {
  subtasks: {
    index: number;
    status: string;
    ack_timestamp?: number;
    end_to_end_duration?: number;
    checkpointed_size?: number;
    state_size?: number;
    checkpoint?: { sync: number; async: number };
  }[];
}

export interface Failure {
  exceptionName: string;
  stacktrace: string;
  timestamp: number;
  taskName?: string | null;
  endpoint?: string | null;
  concurrentExceptions?: Failure[];
}

export interface Exceptions {
  exceptionHistory: { entries: Failure[]; truncated: boolean };
}

export interface QueryableState {
  name: string;
  kind: string;
  operator: string;
  vertex: string | null;
}

export interface StatePage {
  state: string;
  kind: string;
  cut: { attempt: number; epoch: number; "processing-time": number };
  entries: { key: unknown; found: boolean; value?: unknown }[];
  next: string | null;
}

export interface TaskManager {
  id: string;
  path: string;
  slotsNumber: number;
  freeSlots: number;
  hardware: { cpuCores: number; physicalMemory: number; freeMemory: number };
  allocatedSlots?: { jobId: string }[];
}

export interface Program {
  id: string;
  name: string;
  uploaded: number;
  entry: { name: string; description: string | null }[];
}

export interface FlameNode {
  name: string;
  value: number;
  children?: FlameNode[];
}

export const RUNNING_STATES = [
  "INITIALIZING",
  "CREATED",
  "RUNNING",
  "FAILING",
  "CANCELLING",
  "RESTARTING",
  "RECONCILING",
  "SUSPENDED",
];

export function isOver(state: string): boolean {
  return state === "FINISHED" || state === "FAILED" || state === "CANCELED";
}
