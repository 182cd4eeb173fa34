/** Requests to the server, one poll for each path however many parts of the page look at it, and what is known of it. */
import { useEffect, useState } from "preact/hooks";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

// --- a value that parts of the page watch ---
export class Watched<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (value === this.current) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener();
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useWatched<T>(watched: Watched<T>): T {
  const [value, setValue] = useState(watched.value);
  useEffect(() => {
    setValue(watched.value);
    return watched.listen(() => setValue(watched.value));
  }, [watched]);
  return value;
}

// --- the connection ---
export interface Connection {
  /** Since when the server has not answered; null while it does. */
  away: number | null;
  needsToken: boolean;
}

export const connection = new Watched<Connection>({ away: null, needsToken: false });
export const paused = new Watched(false);
/** How often figures are asked for, in milliseconds; the server says so. */
export const interval = new Watched(3000);

const TOKEN = "penstock.token";

/** Try a token, with one request: a server counts wrong ones. Throws what is wrong with it. */
export async function enterToken(token: string): Promise<void> {
  const own = { authorization: `Bearer ${token.trim()}` };
  const response = await fetch("config", { headers: own });
  if (response.status === 401) throw new ApiError(401, "This token is not valid here.");
  if (!response.ok) throw await failure(response);
  sessionStorage.setItem(TOKEN, token.trim());
  connection.set({ ...connection.value, needsToken: false });
  for (const poll of polls.values()) poll.refresh();
}

export function hasToken(): boolean {
  return sessionStorage.getItem(TOKEN) !== null;
}

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN);
  connection.set({ ...connection.value, needsToken: true });
}

function headers(): Record<string, string> {
  const token = sessionStorage.getItem(TOKEN);
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

function heard(): void {
  if (connection.value.away !== null) {
    connection.set({ ...connection.value, away: null });
    for (const poll of polls.values()) poll.refresh();
  }
}

function unheard(): void {
  if (connection.value.away === null) connection.set({ ...connection.value, away: Date.now() });
}

/** Ask the server. Paths are relative to the page, so that it may be served below any path. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { ...headers(), ...init.headers } });
  } catch {
    unheard();
    throw new ApiError(0, "The server does not answer.");
  }
  if (response.status === 503 && response.headers.has("retry-after")) {
    unheard(); // no server leads at this moment
  } else {
    heard();
  }
  if (!response.ok) throw await failure(response);
  return response;
}

async function failure(response: Response): Promise<ApiError> {
  if (response.status === 401) {
    sessionStorage.removeItem(TOKEN);
    connection.set({ ...connection.value, needsToken: true });
  }
  const text = await response.text();
  try {
    const { errors } = JSON.parse(text) as { errors: string[] };
    return new ApiError(response.status, errors.join(" "));
  } catch {
    return new ApiError(response.status, text || `HTTP ${response.status}`);
  }
}

export async function get<T>(path: string): Promise<T> {
  return (await request(path)).json() as Promise<T>;
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method };
  if (body instanceof FormData) init.body = body;
  else if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  return (await request(path, init)).json() as Promise<T>;
}

// --- polls ---
const FAILED_PAUSE = 2000;

/** Asks for one path again and again, as long as somebody looks at it. What it heard last stays when the server goes. */
class Poll {
  readonly answer = new Watched<Answer<unknown>>({ data: undefined, error: null, at: 0 });
  private text = "";
  private lookers = 0;
  private timer: number | undefined;
  private asking = false;

  constructor(
    private readonly path: string,
    private readonly every: number | null,
  ) {}

  look(): () => void {
    this.lookers++;
    if (this.lookers === 1) this.refresh();
    return () => {
      this.lookers--;
      if (this.lookers === 0) clearTimeout(this.timer);
    };
  }

  refresh(): void {
    clearTimeout(this.timer);
    if (this.lookers > 0 && !this.asking) void this.ask();
  }

  private async ask(): Promise<void> {
    this.asking = true;
    let pause = Math.max(this.every ?? 0, interval.value);
    try {
      const text = await (await request(this.path)).text();
      // What has not changed is not drawn again.
      const data = text === this.text ? this.answer.value.data : (JSON.parse(text) as unknown);
      this.text = text;
      this.answer.set({ data, error: null, at: Date.now() });
    } catch (error) {
      const known = error instanceof ApiError ? error : new ApiError(0, String(error));
      this.answer.set({ ...this.answer.value, error: known });
      pause = FAILED_PAUSE;
    } finally {
      this.asking = false;
    }
    if (this.lookers > 0 && (this.every !== null || this.answer.value.error !== null)) this.next(pause);
  }

  private next(pause: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      const { away, needsToken } = connection.value;
      const still = (paused.value && away === null) || document.hidden || needsToken;
      if (still) this.next(500);
      else this.refresh();
    }, pause);
  }
}

export interface Answer<T> {
  data: T | undefined;
  error: ApiError | null;
  /** When the data came. */
  at: number;
}

const polls = new Map<string, Poll>();
const MOST_POLLS = 200;

function poll(path: string, every: number | null): Poll {
  const key = every === null ? `once ${path}` : path;
  let known = polls.get(key);
  if (known === undefined) {
    if (polls.size >= MOST_POLLS) polls.delete(polls.keys().next().value as string);
    known = new Poll(path, every);
    polls.set(key, known);
  }
  return known;
}

const NOTHING = new Watched<Answer<unknown>>({ data: undefined, error: null, at: 0 });

function useAnswer<T>(path: string | null, every: number | null): Answer<T> {
  const found = path === null ? null : poll(path, every);
  const answer = (found?.answer ?? NOTHING) as Watched<Answer<T>>;
  const [, redraw] = useState({});
  useEffect(() => {
    if (found === null) return undefined;
    const leave = found.look();
    const unlisten = answer.listen(() => redraw({}));
    return () => {
      unlisten();
      leave();
    };
  }, [found]);
  return answer.value;
}

/** What a path answers, kept up to date; at least `every` milliseconds apart. */
export function usePoll<T>(path: string | null, every = 0): Answer<T> {
  return useAnswer<T>(path, every);
}

/** What a path answers, once. */
export function useOnce<T>(path: string | null): Answer<T> {
  return useAnswer<T>(path, null);
}

export function refreshAll(): void {
  for (const known of polls.values()) known.refresh();
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refreshAll();
});
