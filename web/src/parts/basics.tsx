/** Small parts that every page uses: badges, figures, empty and failed states, text that can be copied. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answer } from "../api";
import { words } from "../format";

const TONES: Record<string, string> = {
  RUNNING: "good",
  FINISHED: "done",
  COMPLETED: "good",
  FAILED: "bad",
  FAILING: "bad",
  RESTARTING: "warn",
  CANCELED: "calm",
  CANCELLING: "warn",
  CANCELING: "warn",
  IN_PROGRESS: "warn",
  SUSPENDED: "warn",
};

export function Badge({ state }: { state: string }) {
  return <span class={`badge ${TONES[state] ?? "calm"}`}>{words(state)}</span>;
}

export function Figure({ label, value, note }: { label: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        {value}
        {note !== undefined && <span class="note">{note}</span>}
      </dd>
    </div>
  );
}

export function Figures({ children, compact }: { children: ComponentChildren; compact?: boolean }) {
  return <dl class={compact ? "figures compact" : "figures"}>{children}</dl>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div>{children}</div>}
    </div>
  );
}

export function Problem({ text }: { text: string }) {
  return (
    <div class="problem" role="alert">
      {text}
    </div>
  );
}

export function Loading() {
  return (
    <div class="loading" role="status">
      <span class="hidden">Loading</span>
    </div>
  );
}

/** What there is to show of an answer: the data, what went wrong, or that it is on its way. */
export function Shown<T>({ answer, children }: { answer: Answer<T>; children: (data: T) => ComponentChildren }) {
  if (answer.data !== undefined) return <>{children(answer.data)}</>;
  if (answer.error !== null && answer.error.status !== 0) return <Problem text={answer.error.message} />;
  return <Loading />;
}

export function Card({
  title,
  aside,
  children,
  class: name = "",
}: {
  title?: ComponentChildren;
  aside?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`card ${name}`}>
      {(title !== undefined || aside !== undefined) && (
        <div class="card-head">
          {title !== undefined && <h2>{title}</h2>}
          {aside}
        </div>
      )}
      {children}
    </section>
  );
}

export function Copy({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  return (
    <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${label}`}>
      {copied ? "copied" : "copy"}
    </button>
  );
}

/** A heading that gets the focus when a page is opened, so that screen readers begin there. */
export function PageTitle({ children, title }: { children: ComponentChildren; title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Penstock`;
  }, [title]);
  useEffect(() => {
    if (document.activeElement === document.body || document.activeElement === null) heading.current?.focus();
  }, []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  );
}

export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
