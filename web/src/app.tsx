/** The frame around all pages: head, banners, the question for a token, and what is shown at which place. */
import { useEffect, useState } from "preact/hooks";
import { connection, enterToken, forgetToken, hasToken, interval, paused, usePoll, useWatched } from "./api";
import { duration } from "./format";
import { Operations } from "./operations";
import { JobPage } from "./pages/job";
import { JobManagerPage } from "./pages/job-manager";
import { JobsPage } from "./pages/jobs";
import { OverviewPage } from "./pages/overview";
import { SubmitPage } from "./pages/submit";
import { TaskManagerPage, TaskManagersPage } from "./pages/task-managers";
import { Empty, PageTitle, Problem } from "./parts/basics";
import { Dialog, Field } from "./parts/dialog";
import { to, usePlace } from "./router";
import type { Overview, WebConfig } from "./types";

const PAGES: [id: string, title: string][] = [
  ["", "Overview"],
  ["jobs", "Jobs"],
  ["submit", "Submit"],
  ["taskmanagers", "Task managers"],
  ["jobmanager", "Job manager"],
];

export function App() {
  const place = usePlace();
  const { data: config } = usePoll<WebConfig>("config", 60_000);
  useEffect(() => {
    if (config !== undefined) interval.set(Math.max(500, config["refresh-interval"]));
  }, [config]);
  const current = PAGES.some(([id]) => id === place[0]) ? place[0]! : "";
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the page
      </a>
      <header class="head">
        <a class="logo" href={to()} aria-label="Penstock, overview">
          <Mark /> Penstock
        </a>
        <nav aria-label="Pages">
          {PAGES.map(([id, title]) => (
            <a key={id} href={id === "" ? to() : to(id)} aria-current={current === id ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <div class="head-tools">
          <Pause />
          <Theme />
          {hasToken() && (
            <button type="button" class="quiet" onClick={forgetToken}>
              Sign out
            </button>
          )}
        </div>
      </header>
      <Away />
      <main id="main" tabIndex={-1}>
        <Page place={place} />
      </main>
      <Foot />
      <Operations />
      <TokenQuestion />
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true" class="mark">
      <rect width="32" height="32" rx="7" />
      <path d="M7 9h9a7 7 0 0 1 7 7v8" stroke-width="5" />
      <path d="M7 18h4a3 3 0 0 1 3 3v3" stroke-width="4" class="mark-inner" />
    </svg>
  );
}

function Page({ place }: { place: string[] }) {
  const [page, id, ...rest] = place;
  switch (page) {
    case undefined:
      return <OverviewPage />;
    case "jobs":
      return id === undefined ? <JobsPage /> : <JobPage key={id} id={id} rest={rest} />;
    case "submit":
      return <SubmitPage />;
    case "taskmanagers":
      return id === undefined ? <TaskManagersPage /> : <TaskManagerPage key={id} id={id} tab={rest[0]} />;
    case "jobmanager":
      return <JobManagerPage tab={id} />;
    default:
      return (
        <>
          <PageTitle title="Not found">Not found</PageTitle>
          <Empty title="There is no such page.">
            <a href={to()}>To the overview</a>
          </Empty>
        </>
      );
  }
}

function Pause() {
  const still = useWatched(paused);
  return (
    <button type="button" class="quiet" aria-pressed={still} onClick={() => paused.set(!still)}>
      {still ? "Resume" : "Pause"}
      <span class="hidden"> updates</span>
    </button>
  );
}

const THEMES = ["auto", "light", "dark"] as const;

function Theme() {
  const [theme, setTheme] = useState(() => localStorage.getItem("penstock.theme") ?? "auto");
  const choose = (chosen: string) => {
    setTheme(chosen);
    if (chosen === "auto") {
      localStorage.removeItem("penstock.theme");
      delete document.documentElement.dataset["theme"];
    } else {
      localStorage.setItem("penstock.theme", chosen);
      document.documentElement.dataset["theme"] = chosen;
    }
  };
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select value={theme} onChange={event => choose(event.currentTarget.value)}>
        {THEMES.map(name => (
          <option key={name} value={name}>
            {name === "auto" ? "Auto" : name === "light" ? "Light" : "Dark"}
          </option>
        ))}
      </select>
    </label>
  );
}

function Foot() {
  const { data } = usePoll<Overview>("overview");
  return (
    <footer>
      {data && `Penstock ${data["penstock-version"] ?? ""} · Flink's REST interface ${data["flink-version"]} · `}
      <a href="docs">all paths</a> · <a href="assets/licences.txt">licences</a>
    </footer>
  );
}

/** Says that the server does not answer, for how long, and that the page tries again. */
function Away() {
  const { away } = useWatched(connection);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (away === null) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [away]);
  return (
    <div role="status" aria-live="polite">
      {away !== null && (
        <p class="away">
          The server does not answer{now - away > 1000 && ` since ${duration(now - away)}`}. What you see is from
          before; the page goes on by itself when the server is back.
        </p>
      )}
    </div>
  );
}

function TokenQuestion() {
  const { needsToken } = useWatched(connection);
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  if (!needsToken) return null;
  const enter = () => {
    setError("");
    enterToken(token).then(
      () => setToken(""),
      (reason: unknown) => setError((reason as Error).message),
    );
  };
  return (
    <Dialog title="This server asks for a token" action="Go on" onConfirm={enter}>
      <p>With the read token you can look; with the operate token you can also give orders.</p>
      <Field label="Token" hint="It is kept until this tab is closed.">
        <input
          type="password"
          autocomplete="off"
          required
          value={token}
          onInput={event => setToken(event.currentTarget.value)}
        />
      </Field>
      {error !== "" && <Problem text={error} />}
    </Dialog>
  );
}
