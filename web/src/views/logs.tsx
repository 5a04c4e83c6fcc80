import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { address, ask, get, part, Problem, taskPath, type TaskWithHistory } from '../api';
import { spansOf } from '../ansi';
import { count, size } from '../format';
import { t } from '../i18n';
import { useKeys } from '../keys';
import { useResource } from '../live';
import { findAll, findError, LogFile, type Line } from '../logfile';
import { Face, JobLink, State } from '../parts';
import { href, query, setQuery } from '../router';
import { Merged } from './merged';

const lineHeight = 18;

function LineOf({ line, wanted, isHit }: { line: Line; wanted: string; isHit: boolean }) {
  const spans = spansOf(line.text);
  return (
    <div class={isHit ? 'logline hit' : 'logline'}>
      {spans.length === 0 ? '\u200b' : spans.map((span, at) => <span key={at} class={span.className}>{wanted ? marked(span.text, wanted) : span.text}</span>)}
      {line.isCut && <span class="dim"> … {t('cutLine')}</span>}
    </div>
  );
}

function marked(text: string, wanted: string) {
  const low = text.toLowerCase();
  const needle = wanted.toLowerCase();
  const parts = [];
  let from = 0;
  for (let at = low.indexOf(needle); at >= 0; at = low.indexOf(needle, from)) {
    if (at > from) parts.push(text.slice(from, at));
    parts.push(<mark key={at}>{text.slice(at, at + needle.length)}</mark>);
    from = at + needle.length;
  }
  parts.push(text.slice(from));
  return parts;
}

// One stream of one process. Its scroll bar counts bytes: how many lines there are, nobody has to know.
function Viewer({ path, isOver }: { path: string; isOver: boolean }) {
  const file = useRef<LogFile | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const end = useSignal(0);
  const rows = useSignal(30);
  const lines = useSignal<Line[]>([]);
  const follow = useSignal(!query.value.get('at'));
  const problem = useSignal<Problem | undefined>(undefined);
  const known = useSignal(false);
  const wanted = useSignal(query.value.get('q') ?? '');
  const found = useSignal<number[]>([]);
  const searched = useSignal(-1); // percent; -1: nothing is searched for
  const chosen = useSignal(-1);
  const noError = useSignal(false);
  const wrap = query.value.get('wrap') === '1';
  const drawing = useRef(0);

  const show = async (at: number) => {
    const log = file.current;
    if (!log) return;
    const mine = ++drawing.current;
    const n = rows.value + 4;
    const draw = () => {
      top.value = at = log.startOf(Math.max(0, Math.min(at, log.size)));
      lines.value = log.lines(at, n);
    };
    const [from, to] = log.around(at, n);
    if (!log.isHere(from, to)) {
      try {
        await log.need(from, to);
      } catch (error) {
        if (!(error as Error).name.includes('Abort')) problem.value = error instanceof Problem ? error : new Problem(0, String(error));
        return;
      }
      if (mine !== drawing.current) return; // somebody has scrolled on
    }
    draw();
  };
  const toEnd = async () => {
    const log = file.current;
    if (!log) return;
    const [from, to] = log.around(log.size, rows.value);
    await log.need(from, to);
    await show(log.lastTop(rows.value - 1));
  };
  const by = (n: number) => {
    const log = file.current;
    if (!log) return;
    let at = top.value;
    for (let i = 0; i < Math.abs(n); ++i) at = n > 0 ? log.next(at) : log.previous(at);
    const last = log.lastTop(wrap ? 1 : rows.value - 1);
    follow.value = n > 0 && at >= last;
    void show(Math.min(at, Math.max(last, 0)));
  };
  const to = (at: number) => {
    follow.value = false;
    void show(at);
  };

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => { rows.value = Math.max(4, Math.floor(element.clientHeight / lineHeight)); };
    measure();
    const watch = new ResizeObserver(() => { measure(); void (follow.value ? toEnd() : show(top.value)); });
    watch.observe(element);
    const wheel = (event: WheelEvent) => {
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !wrap) return; // sideways
      event.preventDefault();
      rest += event.deltaMode === 0 ? event.deltaY / lineHeight : event.deltaMode === 1 ? event.deltaY : event.deltaY * rows.value;
      const whole = Math.trunc(rest);
      rest -= whole;
      if (whole !== 0) by(whole);
    };
    let rest = 0;
    let touched = 0;
    const begin = (event: TouchEvent) => { touched = event.touches[0]?.clientY ?? 0; };
    const drag = (event: TouchEvent) => {
      const y = event.touches[0]?.clientY ?? 0;
      const n = Math.trunc((touched - y) / lineHeight);
      if (n === 0) return;
      touched -= n * lineHeight;
      event.preventDefault();
      by(n);
    };
    element.addEventListener('wheel', wheel, { passive: false });
    element.addEventListener('touchstart', begin, { passive: true });
    element.addEventListener('touchmove', drag, { passive: false });
    return () => {
      watch.disconnect();
      element.removeEventListener('wheel', wheel);
      element.removeEventListener('touchstart', begin);
      element.removeEventListener('touchmove', drag);
    };
  }, [wrap]);

  useEffect(() => {
    const stop = new AbortController();
    const log = new LogFile(path, stop.signal);
    file.current = log;
    lines.value = [];
    end.value = 0;
    known.value = false;
    problem.value = undefined;
    const run = async () => {
      let patience = 250;
      while (!stop.signal.aborted) {
        try {
          await log.measure();
          end.value = log.size;
          known.value = true;
          const at = Number(query.value.get('at') ?? 0);
          if (lines.value.length === 0) await (follow.value ? toEnd() : show(at));
          problem.value = undefined;
          const response = await ask(`${path}&follow=true&offset=${log.size}`, { signal: stop.signal });
          const reader = response.body?.getReader();
          patience = 250;
          for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
            log.append(piece.value);
            end.value = log.size;
            if (follow.value) await toEnd();
            else if (lines.value.length < rows.value) await show(top.value);
          }
          return; // the attempt has ended and all of it was read
        } catch (error) {
          if (stop.signal.aborted) return;
          if (error instanceof Problem && !error.isOffline && error.status < 500) {
            problem.value = error;
            return;
          }
          await new Promise((again) => setTimeout(again, patience));
          patience = Math.min(4000, patience * 2);
        }
      }
    };
    void run();
    return () => stop.abort();
  }, [path]);

  useEffect(() => {
    const log = file.current;
    found.value = [];
    chosen.value = -1;
    searched.value = -1;
    if (!log || !wanted.value) return;
    let isOff = false;
    const timer = setTimeout(() => {
      searched.value = 0;
      findAll(log, wanted.value, (all, at) => {
        if (isOff) return false;
        const first = found.value.length === 0 && all.length > 0;
        found.value = [...all];
        searched.value = Math.min(100, Math.round((100 * at) / Math.max(1, log.size)));
        if (first) pick(0);
        return true;
      }).then(() => { if (!isOff) searched.value = 100; }, () => {});
    }, 200);
    return () => { isOff = true; clearTimeout(timer); };
  }, [wanted.value, path]);

  const pick = (index: number) => {
    const all = found.value;
    if (all.length === 0) return;
    chosen.value = (index + all.length) % all.length;
    const log = file.current;
    const at = all[chosen.value] as number;
    follow.value = false;
    if (!log) return;
    void log.need(...log.around(at, rows.value)).then(() => {
      let first = log.startOf(at);
      for (let i = 0; i < Math.floor(rows.value / 3); ++i) first = log.previous(first);
      void show(first);
    });
  };
  const toError = async () => {
    const log = file.current;
    if (!log) return;
    const at = await findError(log);
    noError.value = at < 0;
    if (at < 0) return;
    found.value = [at];
    pick(0);
  };
  const keys = (event: KeyboardEvent) => {
    const steps: Record<string, () => void> = {
      ArrowDown: () => by(1), ArrowUp: () => by(-1), PageDown: () => by(rows.value - 2), PageUp: () => by(-(rows.value - 2)),
      ' ': () => by(rows.value - 2), Home: () => to(0), End: () => { follow.value = true; void toEnd(); },
    };
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    step();
  };
  useKeys({ n: () => pick(chosen.value + 1), N: () => pick(chosen.value - 1), f: () => { follow.value = !follow.value; if (follow.value) void toEnd(); } });

  const hit = chosen.value >= 0 ? (found.value[chosen.value] ?? -1) : -1;
  const shownEnd = lines.value.at(-1)?.end ?? top.value;
  const thumb = end.value > 0 ? Math.max(2, (100 * Math.max(1, shownEnd - top.value)) / end.value) : 100;
  const track = (event: PointerEvent) => {
    const element = event.currentTarget as HTMLElement;
    const jump = (y: number) => {
      const area = element.getBoundingClientRect();
      to(Math.floor(Math.max(0, Math.min(1, (y - area.top) / area.height)) * end.value));
    };
    element.setPointerCapture(event.pointerId);
    jump(event.clientY);
    const move = (moved: PointerEvent) => jump(moved.clientY);
    element.addEventListener('pointermove', move);
    element.addEventListener('lostpointercapture', () => element.removeEventListener('pointermove', move), { once: true });
  };
  const every = Math.max(1, Math.floor(found.value.length / 300));
  return (
    <>
      <div class="row wrap tools">
        <input type="search" data-filter aria-label={t('search')} placeholder={t('search')} value={wanted.value}
          onInput={(event) => { wanted.value = event.currentTarget.value; setQuery({ q: wanted.value }); }}
          onKeyDown={(event) => { if (event.key === 'Enter') pick(chosen.value + (event.shiftKey ? -1 : 1)); }} />
        {wanted.value && (
          <span class="row">
            <button class="small" aria-label={t('previousMatch')} onClick={() => pick(chosen.value - 1)}>↑</button>
            <button class="small" aria-label={t('nextMatch')} onClick={() => pick(chosen.value + 1)}>↓</button>
            <span class="num dim" role="status">
              {found.value.length > 0 ? t('matches', { at: count(chosen.value + 1), n: count(found.value.length) }) : searched.value === 100 ? t('noMatches') : ''}
              {searched.value >= 0 && searched.value < 100 && ` ${t('searching', { percent: searched.value })}`}
            </span>
          </span>
        )}
        <button class="small" onClick={() => void toError()}>{t('firstError')}</button>
        {noError.value && <span class="dim" role="status">{t('noError')}</span>}
        <label class="check"><input type="checkbox" checked={wrap} onChange={(event) => setQuery({ wrap: event.currentTarget.checked ? '1' : null })} /> {t('wrap')}</label>
        <label class="check"><input type="checkbox" checked={follow.value} onChange={(event) => { follow.value = event.currentTarget.checked; if (follow.value) void toEnd(); }} /> {t('follow')}</label>
        <span class="num dim">{size(end.value)}</span>
        <a href={address(path)} download="log.txt">{t('download')}</a>
      </div>
      {problem.value && <p class="said" role="alert">{problem.value.message}</p>}
      <div class="log">
        <div class={`lines ${wrap ? 'wrap' : ''} ${follow.value && wrap ? 'atend' : ''}`} ref={box} id="log" tabIndex={0} role="region" aria-label={t('logs')} onKeyDown={keys}>
          {known.value && end.value === 0 && <p class="dim">{isOver ? t('emptyLog') : t('waitingLog')}</p>}
          {lines.value.map((line) => <LineOf key={line.start} line={line} wanted={wanted.value} isHit={hit >= line.start && hit <= line.end} />)}
        </div>
        <div class="track" role="scrollbar" aria-controls="log" aria-orientation="vertical" aria-label={t('logPosition')} tabIndex={0}
          aria-valuemin={0} aria-valuemax={100} aria-valuenow={end.value ? Math.round((100 * top.value) / end.value) : 0}
          onPointerDown={(event) => track(event as PointerEvent)} onKeyDown={keys}>
          {found.value.filter((_, at) => at % every === 0).map((at) => <span key={at} class="tick" style={{ top: `${(100 * at) / Math.max(1, end.value)}%` }} />)}
          <span class="thumb" style={{ top: `${end.value ? Math.min(100 - thumb, (100 * top.value) / end.value) : 0}%`, height: `${thumb}%` }} />
        </div>
      </div>
    </>
  );
}

export function Logs({ job, task }: { job: string; task: string }) {
  const record = useResource(`task ${job} ${task}`, (signal) => get<TaskWithHistory>(taskPath(job, task), signal),
    (event) => event.job === job && (event.task === task || event.task === null));
  const process = query.value.get('process') ?? '0';
  const stream = query.value.get('stream') ?? 'stdout';
  const found = record.data;
  const attempt = query.value.get('attempt') ?? String(found?.attempts || '');
  const path = `${taskPath(job, task)}/logs?process=${part(process)}&stream=${stream}${attempt && `&attempt=${attempt}`}`;
  const isOver = found ? ['succeeded', 'failed', 'cancelled', 'skipped'].includes(found.state) : false;
  useEffect(() => { document.title = `${task} · ${t('logs')} · Slipway`; }, []);
  return (
    <Face data={found} error={record.error} retry={record.refresh}>
      {() => found && (
        <div class="logview">
          <div class="title">
            <h1><span class="num"><JobLink id={job} /></span> / <a href={href(`/jobs/${part(job)}/tasks/${part(task)}`)}>{found.name}</a></h1>
            <State state={found.state} />
            <span class="dim">{found.reason}</span>
          </div>
          <div class="row wrap tools">
            <label>{t('process')}{' '}
              <select value={process} onChange={(event) => setQuery({ process: event.currentTarget.value, at: null })}>
                {found.processes > 1 && <option value="all">{t('allProcesses')}</option>}
                {(found.process_names.length ? found.process_names : ['0']).slice(0, 1000).map((name, rank) => <option key={name} value={rank === 0 ? '0' : name}>{name}</option>)}
              </select>
            </label>
            {process !== 'all' && (
              <label>{t('stream')}{' '}
                <select value={stream} onChange={(event) => setQuery({ stream: event.currentTarget.value === 'stdout' ? null : event.currentTarget.value, at: null })}>
                  <option value="stdout">stdout</option>
                  <option value="stderr">stderr</option>
                </select>
              </label>
            )}
            {found.attempts > 1 && (
              <label>{t('attempt')}{' '}
                <select value={attempt} onChange={(event) => setQuery({ attempt: event.currentTarget.value === String(found.attempts) ? null : event.currentTarget.value, at: null })}>
                  {Array.from({ length: Math.min(found.attempts, 200) }, (_, n) => String(found.attempts - n)).map((one) => <option key={one} value={one}>{one}</option>)}
                </select>
              </label>
            )}
          </div>
          {found.attempts === 0
            ? <p class="dim">{isOver ? t('emptyLog') : t('waitingLog')}</p>
            : process === 'all'
            ? <Merged job={job} task={task} names={found.process_names} attempt={attempt} isOver={isOver} />
            : <Viewer key={path} path={path} isOver={isOver} />}
        </div>
      )}
    </Face>
  );
}
