// What all processes of a task wrote last, in the order in which it came.
import { useEffect, useRef } from 'preact/hooks';
import { ask, get, part, Problem, taskPath } from '../api';
import { spansOf } from '../ansi';
import { clockTime, size } from '../format';
import { t } from '../i18n';
import { useResource } from '../live';
import { Face } from '../parts';

const tailSize = 32 << 10;
const processesMax = 32;
const linesMax = 3000;

interface Entry { time: string; stream: string; end: number }
interface MergedLine { time: string; name: string; stream: string; text: string; key: string }

// The end of a stream, and at which byte it begins.
async function tailOf(path: string, signal: AbortSignal): Promise<[string, number]> {
  try {
    const response = await ask(path, { headers: { Range: `bytes=-${tailSize}` }, signal });
    const from = Number(/bytes (\d+)-/.exec(response.headers.get('Content-Range') ?? '')?.[1] ?? 0);
    const bytes = new Uint8Array(await response.arrayBuffer());
    return [new TextDecoder('latin1').decode(bytes), from];
  } catch (error) {
    if (error instanceof Problem && error.status === 416) return ['', 0];
    throw error;
  }
}

const utf8 = (bytes: string) => new TextDecoder().decode(Uint8Array.from(bytes, (char) => char.charCodeAt(0)));

async function linesOf(base: string, name: string, rank: number, signal: AbortSignal): Promise<MergedLine[]> {
  const times = (await get<{ items: Entry[] }>(base.replace('/logs?', '/logs/times?') + `&process=${rank}`, signal)).items;
  const found: MergedLine[] = [];
  for (const stream of ['stdout', 'stderr']) {
    const [text, from] = await tailOf(`${base}&process=${rank}&stream=${stream}`, signal);
    const own = times.filter((entry) => entry.stream === stream);
    let entry = 0;
    let at = 0;
    while (at < text.length) {
      const newline = text.indexOf('\n', at);
      const end = newline < 0 ? text.length : newline + 1;
      while (entry < own.length - 1 && (own[entry]?.end ?? 0) < from + end) ++entry;
      if (at > 0 || from === 0) // the first may lack its beginning
        found.push({ time: own[entry]?.time ?? '', name, stream, text: utf8(text.slice(at, newline < 0 ? end : newline)), key: `${rank} ${stream} ${from + at}` });
      at = end;
    }
  }
  return found;
}

export function Merged({ job, task, names, attempt, isOver }: { job: string; task: string; names: string[]; attempt: string; isOver: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const base = `${taskPath(job, task)}/logs?${attempt && `attempt=${part(attempt)}`}`;
  const lines = useResource(`merged ${base}`, async (signal) => {
    const all = await Promise.all(names.slice(0, processesMax).map((name, rank) => linesOf(base, name, rank, signal)));
    return all.flat().sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0)).slice(-linesMax);
  }, (event) => event.job === job, isOver ? 0 : 1000);
  useEffect(() => { if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines.data]);
  return (
    <Face data={lines.data} error={lines.error} retry={lines.refresh} empty={isOver ? t('emptyLog') : t('waitingLog')}>
      {() => (
        <>
          <p class="dim">{t('lastOfEach', { size: size(tailSize) })}</p>
          <div class="log merged" ref={box} tabIndex={0} role="region" aria-label={t('logs')}
            onScroll={(event) => { const element = event.currentTarget; atEnd.current = element.scrollTop + element.clientHeight > element.scrollHeight - 40; }}>
            {lines.data?.map((line) => (
              <div key={line.key} class="logline">
                <span class="dim">{line.time && clockTime(line.time)} </span><span class={line.stream === 'stderr' ? 'ansi-yellow' : 'ansi-cyan'}>{line.name} </span>
                {spansOf(line.text).map((span, at) => <span key={at} class={span.className}>{span.text}</span>)}
              </div>
            ))}
          </div>
        </>
      )}
    </Face>
  );
}
