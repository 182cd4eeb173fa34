/** What can be done to a job that runs. Every order is asked about first, and its progress is shown. */
import { useState } from "preact/hooks";
import { send, useOnce } from "../api";
import { operate, triggered } from "../operations";
import { Dialog, Field } from "../parts/dialog";
import type { Job, WebConfig } from "../types";

type Asked = "savepoint" | "stop" | "rescale" | "cancel" | null;

export function JobActions({ job }: { job: Job }) {
  const [asked, setAsked] = useState<Asked>(null);
  const { data: config } = useOnce<WebConfig>("config");
  const close = () => setAsked(null);
  const streaming = job["job-type"] !== "BATCH";
  return (
    <div class="actions">
      {streaming && (
        <>
          <button type="button" onClick={() => setAsked("savepoint")}>
            Savepoint
          </button>
          <button type="button" onClick={() => setAsked("rescale")}>
            Rescale
          </button>
          <button type="button" onClick={() => setAsked("stop")}>
            Stop
          </button>
        </>
      )}
      {config?.features["web-cancel"] !== false && (
        <button type="button" class="danger" onClick={() => setAsked("cancel")}>
          Cancel
        </button>
      )}
      {asked === "savepoint" && <SavepointDialog job={job} onClose={close} />}
      {asked === "stop" && <StopDialog job={job} onClose={close} />}
      {asked === "rescale" && <RescaleDialog job={job} onClose={close} />}
      {asked === "cancel" && <CancelDialog job={job} onClose={close} />}
    </div>
  );
}

interface AskProps {
  job: Job;
  onClose: () => void;
}

function Folder({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  return (
    <Field label="Folder" hint="Empty: where the job's settings say.">
      <input value={value} placeholder="file:///backups" onInput={event => onChange(event.currentTarget.value)} />
    </Field>
  );
}

function SavepointDialog({ job, onClose }: AskProps) {
  const [folder, setFolder] = useState("");
  const take = () => {
    onClose();
    operate(`Savepoint of ${job.name}`, async () => {
      const body = folder === "" ? {} : { "target-directory": folder };
      const done = await triggered(`jobs/${job.jid}/savepoints`, body);
      return { text: "The savepoint is complete.", result: done?.location ?? "" };
    });
  };
  return (
    <Dialog title={`Take a savepoint of ${job.name}`} action="Take savepoint" onClose={onClose} onConfirm={take}>
      <p>The job runs on. The savepoint is yours: it stays until you delete it.</p>
      <Folder value={folder} onChange={setFolder} />
    </Dialog>
  );
}

function StopDialog({ job, onClose }: AskProps) {
  const [folder, setFolder] = useState("");
  const [drain, setDrain] = useState(false);
  const stop = () => {
    onClose();
    operate(`Stopping ${job.name}`, async () => {
      const body = { drain, ...(folder === "" ? {} : { targetDirectory: folder }) };
      const path = `jobs/${job.jid}`;
      const done = await triggered(`${path}/stop`, body, `${path}/savepoints`);
      return { text: "The job has finished with a savepoint.", result: done?.location ?? "" };
    });
  };
  return (
    <Dialog title={`Stop ${job.name}`} action="Stop with a savepoint" danger onClose={onClose} onConfirm={stop}>
      <p>The job takes a savepoint and finishes. It, or its next version, can go on from there.</p>
      <Folder value={folder} onChange={setFolder} />
      <label class="check">
        <input type="checkbox" checked={drain} onChange={event => setDrain(event.currentTarget.checked)} />
        Drain: end event time first, so that all windows and timers fire. Only if the job is not to go on.
      </label>
    </Dialog>
  );
}

function RescaleDialog({ job, onClose }: AskProps) {
  const now = Math.max(1, ...job.vertices.map(vertex => vertex.parallelism));
  const most = Math.min(32768, ...job.vertices.map(vertex => vertex.maxParallelism));
  const [parallelism, setParallelism] = useState(String(now));
  const rescale = () => {
    onClose();
    operate(`Rescaling ${job.name} to ${parallelism}`, async () => {
      await triggered(`jobs/${job.jid}/rescaling`, { parallelism: Number(parallelism) });
      return { text: `The job goes on with a parallelism of ${parallelism}.` };
    });
  };
  return (
    <Dialog title={`Rescale ${job.name}`} action="Rescale" onClose={onClose} onConfirm={rescale}>
      <p>
        The job stops with a savepoint and goes on from there with another parallelism. Nothing is lost or repeated.
      </p>
      <Field label="Parallelism" hint={`It is ${now} now, and can be up to ${most}.`}>
        <input
          type="number"
          min={1}
          max={most}
          required
          value={parallelism}
          onInput={event => setParallelism(event.currentTarget.value)}
        />
      </Field>
    </Dialog>
  );
}

function CancelDialog({ job, onClose }: AskProps) {
  const cancel = () => {
    onClose();
    operate(`Cancelling ${job.name}`, async () => {
      await send("PATCH", `jobs/${job.jid}?mode=cancel`, {});
      return { text: "The job has been told to end." };
    });
  };
  return (
    <Dialog title={`Cancel ${job.name}?`} action="Cancel the job" danger onClose={onClose} onConfirm={cancel}>
      <p>The job ends without a savepoint. To go on later, stop it instead.</p>
    </Dialog>
  );
}
