import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ask, get, part, type Node as NodeRecord } from '../api';
import { exact, size } from '../format';
import { t } from '../i18n';
import { useResource } from '../live';
import { Ago, Face, PoolLink, State, TaskName } from '../parts';
import { NodeActions } from './pool';

const tailSize = 65536;

function StartTask({ node }: { node: NodeRecord }) {
  const text = useSignal('');
  const start = node.start_task;
  useEffect(() => {
    const stop = new AbortController();
    const load = async () => {
      const said: string[] = [];
      for (const stream of ['stdout', 'stderr'])
        try {
          const response = await ask(`v1/nodes/${part(node.name)}/start-task/${stream}`, { headers: { Range: `bytes=-${tailSize}` }, signal: stop.signal });
          said.push(await response.text());
        } catch { /* it wrote nothing, or has not begun */ }
      text.value = said.filter(Boolean).join('\n');
    };
    void load();
    return () => stop.abort();
  }, [node.name, start?.attempt, start?.state]);
  if (!start || start.state === 'none') return null;
  return (
    <section>
      <h2>{t('start')}</h2>
      <p><State state={start.state} /> {start.detail}</p>
      {text.value && <pre tabIndex={0}>{text.value}</pre>}
    </section>
  );
}

export function Node({ name }: { name: string }) {
  const node = useResource(`node ${name}`, (signal) => get<NodeRecord>(`v1/nodes/${part(name)}`, signal),
    (event) => event.node === name || event.kind.startsWith('attempt.'), 3_000);
  useEffect(() => { document.title = `${name} · Slipway`; }, []);
  return (
    <Face data={node.data} error={node.error} retry={node.refresh}>
      {() => node.data && (
        <>
          <div class="title">
            <h1 class="num">{node.data.name}</h1>
            <State state={node.data.state} />
            <span class="dim"><PoolLink name={node.data.pool} />{node.data.low_priority && ` · ${t('lowPriority')}`}</span>
            <span class="dim"><Ago time={node.data.changed_at} /></span>
            <span class="space" />
            <NodeActions node={node.data} changed={node.refresh} />
          </div>
          {node.data.reason && <p class="line dim">{node.data.reason}</p>}
          <section>
            <dl class="facts">
              <div><dt>{t('cores')}</dt><dd class="num">{t('of', { used: node.data.used.cores, all: node.data.cores })}</dd></div>
              <div><dt>{t('memory')}</dt><dd class="num">{t('of', { used: size(node.data.used.memory), all: size(node.data.memory) })}</dd></div>
              <div><dt>{t('gpus')}</dt><dd class="num">{t('of', { used: node.data.used.gpus, all: node.data.gpus })}</dd></div>
              <div><dt>{t('address')}</dt><dd class="num">{node.data.address || node.data.host}</dd></div>
            </dl>
            <meter min={0} max={node.data.cores} value={node.data.used.cores} aria-label={t('cores')} />
          </section>
          <section>
            <h2>{t('runningHere')}</h2>
            {node.data.running.length === 0 ? <p class="dim">{t('noRunning')}</p>
              : <ul class="plainlist">{node.data.running.map((task) => <li key={task}><TaskName name={task} /></li>)}</ul>}
          </section>
          <StartTask node={node.data} />
          <section>
            <h2>{t('steps')}</h2>
            <table class="list"><tbody>
              {[...node.data.steps].reverse().map((step, index) => (
                <tr key={index}><td class="num">{exact(step.time)}</td><td><State state={step.state} /></td><td>{step.reason}</td></tr>
              ))}
            </tbody></table>
          </section>
          {node.data.notes.map((note) => <p key={note} class="dim">{note}</p>)}
        </>
      )}
    </Face>
  );
}
