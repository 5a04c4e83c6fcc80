// What views are made of: marks of states, faces for empty, loading, error and denied, tables, questions.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Problem } from './api';
import { ago, exact } from './format';
import { t, word, type Text } from './i18n';
import { connection } from './live';
import { href } from './router';

// Every state has a shape, so that colour is never the only sign.
export const kinds: Record<string, { kind: string; mark: string }> = {
  queued: { kind: 'wait', mark: '○' }, waiting: { kind: 'wait', mark: '○' }, joining: { kind: 'wait', mark: '○' },
  idle: { kind: 'wait', mark: '○' }, starting: { kind: 'run', mark: '◔' }, running: { kind: 'run', mark: '◐' },
  busy: { kind: 'run', mark: '◐' }, stopping: { kind: 'run', mark: '◒' }, succeeded: { kind: 'good', mark: '●' },
  exited: { kind: 'good', mark: '●' }, failed: { kind: 'bad', mark: '✕' }, lost: { kind: 'bad', mark: '✕' },
  start_failed: { kind: 'bad', mark: '✕' }, signalled: { kind: 'bad', mark: '✕' },
  timed_out: { kind: 'bad', mark: '✕' }, node_lost: { kind: 'again', mark: '↻' },
  evicted: { kind: 'again', mark: '↻' }, draining: { kind: 'again', mark: '↧' },
  cancelled: { kind: 'none', mark: '–' }, skipped: { kind: 'none', mark: '–' }, gone: { kind: 'none', mark: '–' },
};

export function State({ state, bare }: { state: string; bare?: boolean }) {
  const { kind, mark } = kinds[state] ?? { kind: 'wait', mark: '○' };
  return (
    <span class={`state ${kind}`}>
      <span class="mark" aria-hidden="true">{mark}</span>
      {bare ? <span class="unseen">{word(state)}</span> : word(state)}
    </span>
  );
}

export function Ago({ time }: { time: string | null }) {
  return time ? <time dateTime={time} title={exact(time)}>{ago(time)}</time> : <>–</>;
}

// What a view shows instead of its data. Where there is data it stays, whatever happened since.
export function Face({ data, error, empty, children, retry }: {
  data: unknown; error: Problem | undefined; empty?: ComponentChildren; children: () => ComponentChildren;
  retry?: () => void;
}) {
  const late = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => { late.value = true; }, 300);
    return () => clearTimeout(timer);
  }, []);
  if (data === undefined && error)
    return (
      <div class="face" role="alert">
        <h2>{error.isDenied ? t('denied') : t('error')}</h2>
        <p>{error.message}</p>
        {error.hint && <p class="dim">{error.hint}</p>}
        {retry && <button onClick={retry}>{t('retry')}</button>}
      </div>
    );
  if (data === undefined) return <div class="face dim" aria-busy="true">{late.value ? t('loading') : ''}</div>;
  if (empty !== undefined && Array.isArray(data) && data.length === 0) return <div class="face dim">{empty}</div>;
  return <div class={connection.value === 'lost' ? 'stale' : undefined}>{children()}</div>;
}

export function Copy({ text }: { text: string }) {
  const done = useSignal(false);
  return (
    <button
      class="small"
      onClick={async () => {
        await navigator.clipboard.writeText(text);
        done.value = true;
        setTimeout(() => { done.value = false; }, 1500);
      }}
    >
      {done.value ? t('copied') : t('copy')}
    </button>
  );
}

// Before something is destroyed: it says what, by name and number.
export function Ask({ question, yes, no, onYes, onNo }: {
  question: string; yes: string; no: string; onYes: () => void; onNo: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => { dialog.current?.showModal(); }, []);
  return (
    <dialog ref={dialog} aria-label={question} onClose={onNo} onCancel={onNo}>
      <p>{question}</p>
      <div class="row end">
        <button onClick={onNo}>{no}</button>
        <button class="danger" onClick={onYes}>{yes}</button>
      </div>
    </dialog>
  );
}

export function Said({ error }: { error: Problem | undefined }) {
  if (!error) return null;
  return (
    <p class="said" role="alert">
      {error.message}{error.hint && <span class="dim"> {error.hint}</span>}
    </p>
  );
}

export function Tabs({ tabs, chosen, to }: { tabs: [string, Text, string?][]; chosen: string; to: (tab: string) => string }) {
  return (
    <nav class="tabs" aria-label={t('summary')}>
      {tabs.map(([tab, text, note]) => (
        <a key={tab} href={to(tab)} aria-current={tab === chosen ? 'page' : undefined}>
          {t(text)}{note && <span class="dim num"> {note}</span>}
        </a>
      ))}
    </nav>
  );
}

export const JobLink = ({ id, children }: { id: string; children?: ComponentChildren }) => (
  <a href={href(`/jobs/${encodeURIComponent(id)}`)}>{children ?? id}</a>
);
export const NodeLink = ({ name }: { name: string }) => (
  <a class="num" href={href(`/nodes/${encodeURIComponent(name)}`)}>{name}</a>
);
export const PoolLink = ({ name }: { name: string }) => (
  <a href={href(`/pools/${encodeURIComponent(name)}`)}>{name}</a>
);

// job_7/fit, as reasons and nodes name what runs: links to it.
export function TaskName({ name }: { name: string }) {
  const slash = name.indexOf('/');
  if (slash < 0) return <span class="num">{name}</span>;
  const job = name.slice(0, slash);
  const task = name.slice(slash + 1);
  return <a class="num" href={href(`/jobs/${encodeURIComponent(job)}/tasks/${encodeURIComponent(task)}`)}>{name}</a>;
}

// A line of a table is opened wherever it is clicked; its link is what the keyboard and screen readers reach.
export function opensLink(event: MouseEvent) {
  if ((event.target as Element).closest('a, button, input')) return;
  if (getSelection()?.toString()) return;
  (event.currentTarget as HTMLElement).querySelector<HTMLAnchorElement>('a')?.click();
}
