/** A question that has to be answered first. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  action: string;
  danger?: boolean;
  children: ComponentChildren;
  /** Nothing can be cancelled if there is nothing else to do. */
  onClose?: () => void;
  onConfirm: () => void;
}

export function Dialog({ title, action, danger, children, onClose, onConfirm }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    onConfirm();
  };
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose?.();
  };
  return (
    <dialog ref={dialog} aria-labelledby={heading} onCancel={cancel}>
      <form method="dialog" onSubmit={submit}>
        <h2 id={heading}>{title}</h2>
        {children}
        <div class="dialog-buttons">
          {onClose && (
            <button type="button" onClick={onClose}>
              Back
            </button>
          )}
          <button type="submit" class={danger ? "danger" : "primary"}>
            {action}
          </button>
        </div>
      </form>
    </dialog>
  );
}

export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {hint !== undefined && <small>{hint}</small>}
    </label>
  );
}
