import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { ask, get, jobPath, type Job, type JobWithSpec, type Plan, type Problem, send } from '../api';
import { count } from '../format';
import { t } from '../i18n';
import { Said } from '../parts';
import { go, query, setQuery } from '../router';
import { templates } from '../templates';
import { toYaml } from '../yaml';

const kept = 'slipway.draft';

// The line that a message of the service is about, where it says one.
export function lineOf(message: string): number | undefined {
  const said = /(?:line |:)(\d+)\b/.exec(message);
  return said ? Number(said[1]) : undefined;
}

export function New() {
  const text = useSignal(localStorage.getItem(kept) ?? templates.single);
  const state = useSignal<'checking' | 'valid' | 'wrong'>('checking');
  const problem = useSignal<Problem | undefined>(undefined);
  const plan = useSignal<Plan | undefined>(undefined);
  const busy = useSignal(false);
  const number = useRef(0);
  const key = useRef('');
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLDivElement>(null);
  const from = query.value.get('from');
  useEffect(() => { document.title = `${t('newJob')} · Slipway`; });
  const put = (next: string) => {
    text.value = next;
    localStorage.setItem(kept, next);
  };
  useEffect(() => {
    if (!from) return;
    const stop = new AbortController();
    get<JobWithSpec>(`${jobPath(from)}?spec=all`, stop.signal).then(
      (job) => { put(toYaml(job.spec)); setQuery({ from: null }); },
      (error: unknown) => { if (!stop.signal.aborted) problem.value = error as Problem; });
    return () => stop.abort();
  }, [from]);
  useEffect(() => {
    const mine = ++number.current;
    key.current = ''; // another job than the one that was sent
    state.value = 'checking';
    const timer = setTimeout(async () => {
      try {
        const found = await send<Plan>('POST', 'v1/jobs?dry_run=true', text.value, 'application/yaml');
        if (mine !== number.current) return;
        plan.value = found;
        problem.value = undefined;
        state.value = 'valid';
      } catch (error) {
        if (mine !== number.current) return;
        problem.value = error as Problem;
        state.value = 'wrong';
      }
    }, 200);
    return () => clearTimeout(timer);
  }, [text.value]);
  const submit = async () => {
    busy.value = true;
    // Sent again after an answer that was lost, it makes no second job.
    key.current ||= crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
    try {
      const response = await ask('v1/jobs', {
        method: 'POST', body: text.value, headers: { 'Content-Type': 'application/yaml', 'Idempotency-Key': key.current },
      });
      const job = await response.json() as Job;
      localStorage.removeItem(kept);
      go(`/jobs/${job.id}`);
    } catch (error) {
      problem.value = error as Problem;
      state.value = 'wrong';
    }
    busy.value = false;
  };
  const wrongLine = state.value === 'wrong' && problem.value ? lineOf(problem.value.message) : undefined;
  const lines = text.value.split('\n').length;
  return (
    <section>
      <h1>{t('newJob')}</h1>
      <div class="row wrap tools" role="group" aria-label={t('template')}>
        <span class="dim">{t('template')}</span>
        {(Object.keys(templates) as (keyof typeof templates)[]).map((name) => (
          <button key={name} class="small" onClick={() => { put(templates[name]); area.current?.focus(); }}>{t(name)}</button>
        ))}
      </div>
      <div class="editor">
        <div class="gutter num" ref={gutter} aria-hidden="true">
          {Array.from({ length: lines }, (_, line) => <div key={line} class={line + 1 === wrongLine ? 'wrong' : undefined}>{line + 1}</div>)}
        </div>
        <textarea ref={area} class="code" spellcheck={false} wrap="off" rows={Math.max(14, Math.min(40, lines + 2))} value={text.value} data-filter
          aria-label={t('editorLabel')} aria-invalid={state.value === 'wrong'} aria-describedby="verdict"
          onScroll={(event) => { if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop; }}
          onInput={(event) => put(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && state.value === 'valid') void submit(); }} />
      </div>
      <div id="verdict" class="verdict" aria-live="polite">
        {state.value === 'checking' && <p class="dim">{t('checking')}</p>}
        {state.value === 'valid' && <p class="good">● {t('valid')}</p>}
        {state.value === 'valid' && plan.value?.notes.map((note) => <p key={note} class="dim">{note}</p>)}
        {state.value === 'valid' && plan.value?.tasks.slice(0, 20).map((task) => (
          <p key={task.name}><span class="num">{task.name}</span> {t('startNow', { placed: count(task.placed), all: count(task.tasks) })} <span class="dim">{task.reason}</span></p>
        ))}
        {state.value === 'wrong' && <Said error={problem.value} />}
      </div>
      <div class="row">
        <button class="main" disabled={state.value !== 'valid' || busy.value} onClick={() => void submit()}>{t('submit')} <kbd>Ctrl Enter</kbd></button>
        <button onClick={() => put(templates.single)}>{t('discard')}</button>
        <span class="dim">{t('draft')}</span>
      </div>
    </section>
  );
}
