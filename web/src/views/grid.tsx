// All tasks of a job as cells of a canvas: colour and shape by state; 100,000 of them are drawn at once.
import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, jobPath, part, type EntryStates, type Page, type TaskState } from '../api';
import { count } from '../format';
import { t, word } from '../i18n';
import { useResource } from '../live';
import { Face, State, kinds } from '../parts';
import { go } from '../router';
import { isDark } from '../theme';

interface Entry { name: string; first: number; at: number; isArray: boolean }
interface Cells { states: TaskState[]; entries: Entry[]; isCut: boolean }

export function cellsOf(page: Page<EntryStates>): Cells {
  const states: TaskState[] = [];
  const entries: Entry[] = [];
  for (const item of page.items) {
    const array = /^(.*)\[(\d+)\]$/.exec(item.first);
    entries.push({ name: array?.[1] ?? item.first, first: Number(array?.[2] ?? 0), at: states.length, isArray: !!array });
    for (const [state, n] of item.states) for (let i = 0; i < n; ++i) states.push(state);
  }
  return { states, entries, isCut: !!page.next };
}

export function nameOf(cells: Cells, index: number): string {
  let low = 0;
  let high = cells.entries.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((cells.entries[middle]?.at ?? 0) <= index) low = middle;
    else high = middle - 1;
  }
  const entry = cells.entries[low];
  if (!entry) return '';
  return entry.isArray ? `${entry.name}[${entry.first + index - entry.at}]` : entry.name;
}

function cellSize(n: number): number {
  return n <= 200 ? 20 : n <= 2000 ? 12 : n <= 20000 ? 7 : 5;
}

function draw(canvas: HTMLCanvasElement, cells: Cells, columns: number, size: number, marked: number) {
  const style = getComputedStyle(document.documentElement);
  const color = (kind: string) => style.getPropertyValue(`--${kind}`).trim();
  const colors: Record<string, string> = {};
  for (const kind of ['wait', 'run', 'good', 'bad', 'again', 'none']) colors[kind] = color(kind);
  const rows = Math.ceil(cells.states.length / columns);
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.max(1, columns * size * ratio);
  canvas.height = Math.max(1, rows * size * ratio);
  canvas.style.width = `${columns * size}px`;
  canvas.style.height = `${rows * size}px`;
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(ratio, ratio);
  const gap = size > 6 ? 2 : 1;
  const side = size - gap;
  // One pass a kind: a change of colour costs more than a cell.
  for (const kind of Object.keys(colors)) {
    context.fillStyle = context.strokeStyle = colors[kind] as string;
    context.lineWidth = size > 8 ? 2 : 1;
    context.beginPath();
    for (let i = 0; i < cells.states.length; ++i) {
      if (kinds[cells.states[i] as string]?.kind !== kind) continue;
      const x = (i % columns) * size;
      const y = Math.floor(i / columns) * size;
      if (kind === 'wait') context.rect(x + 0.5, y + 0.5, side - 1, side - 1); // hollow
      else if (kind === 'none') context.rect(x, y + side / 2 - 0.5, side, Math.max(1, side / 5)); // dash
      else if (kind === 'bad' && size > 6) { // cross
        context.moveTo(x + 1, y + 1); context.lineTo(x + side - 1, y + side - 1);
        context.moveTo(x + side - 1, y + 1); context.lineTo(x + 1, y + side - 1);
      } else if (kind === 'run') context.rect(x, y + side / 2, side, side / 2); // half
      else if (kind === 'again') context.rect(x, y, side / 2, side);
      else context.rect(x, y, side, side);
    }
    if (kind === 'wait' || (kind === 'bad' && size > 6)) context.stroke();
    else context.fill();
  }
  if (marked >= 0) {
    context.strokeStyle = style.getPropertyValue('--text').trim();
    context.lineWidth = 2;
    context.strokeRect((marked % columns) * size - 1, Math.floor(marked / columns) * size - 1, size, size);
  }
}

export function Grid({ job }: { job: string }) {
  const loaded = useResource(`states ${job}`, (signal) => get<Page<EntryStates>>(`${jobPath(job)}/task-states`, signal),
    (event) => event.job === job && (event.kind.startsWith('attempt.') || event.kind.startsWith('task.') || event.kind.startsWith('job.')));
  return (
    <Face data={loaded.data} error={loaded.error} retry={loaded.refresh}>
      {() => loaded.data && <Canvas job={job} cells={cellsOf(loaded.data)} />}
    </Face>
  );
}

function Canvas({ job, cells }: { job: string; cells: Cells }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(800);
  const marked = useSignal(-1);
  const size = cellSize(cells.states.length);
  const columns = Math.max(1, Math.floor((width.value - 4) / size));
  const dark = useComputed(isDark);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => { width.value = element.clientWidth; });
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const frame = requestAnimationFrame(() => { if (canvas.current) draw(canvas.current, cells, columns, size, marked.value); });
    return () => cancelAnimationFrame(frame);
  }, [cells, columns, size, marked.value, dark.value]);
  const open = (index: number) => go(`/jobs/${part(job)}/tasks/${part(nameOf(cells, index))}`);
  const indexAt = (event: MouseEvent) => {
    const column = Math.floor(event.offsetX / size);
    const index = Math.floor(event.offsetY / size) * columns + column;
    return column < columns && index < cells.states.length ? index : -1;
  };
  const move = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step !== undefined) {
      marked.value = Math.max(0, Math.min(cells.states.length - 1, marked.value + step));
      box.current?.scrollTo({ top: Math.floor(marked.value / columns) * size - 100 });
    } else if (event.key === 'Enter' && marked.value >= 0) open(marked.value);
    else return;
    event.preventDefault();
  };
  const counts = new Map<string, number>();
  for (const state of cells.states) counts.set(state, (counts.get(state) ?? 0) + 1);
  const chosen = cells.states[marked.value];
  return (
    <div>
      <p class="row wrap legend">
        {[...counts].map(([state, n]) => <span key={state}><State state={state} /> <span class="num">{count(n)}</span></span>)}
      </p>
      <div class="grid" ref={box} tabIndex={0} role="application" aria-label={t('grid', { n: count(cells.states.length) })}
        aria-describedby="grid-at" onKeyDown={move}>
        <canvas ref={canvas} onMouseMove={(event) => { marked.value = indexAt(event); }}
          onClick={(event) => { const index = indexAt(event); if (index >= 0) open(index); }} />
      </div>
      <p id="grid-at" class="dim" aria-live="polite">
        {chosen ? `${nameOf(cells, marked.value)} · ${word(chosen)}` : t('gridHelp')}
        {cells.isCut && ` ${t('gridCut', { n: count(cells.states.length) })}`}
      </p>
    </div>
  );
}
