import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { all, get, part, send, type Evaluation, type Event, type Node, type Page, type Pool as PoolRecord, type PoolHistory, type Problem } from '../api';
import { clockTime, count, exact, size } from '../format';
import { t, word } from '../i18n';
import { useResource } from '../live';
import { Ago, Ask, Face, NodeLink, Said, State, Tabs, TaskName } from '../parts';
import { href, query } from '../router';
import { Table } from '../table';
import { isDark } from '../theme';
import { Strip } from './overview';

const usual = '$TargetDedicatedNodes = min(10, $PendingTasks.GetSample(1));\n';

// Says what a formula would give now, as it is typed: the service evaluates it on the pool's own samples.
function Autoscale({ pool, changed }: { pool: PoolRecord; changed: () => void }) {
  const kept = `slipway.formula.${pool.name}`;
  const text = useSignal(localStorage.getItem(kept) ?? pool.autoscale.formula ?? usual);
  const outcome = useSignal<Evaluation | undefined>(undefined);
  const said = useSignal<Problem | undefined>(undefined);
  const number = useRef(0);
  useEffect(() => {
    const mine = ++number.current;
    const timer = setTimeout(async () => {
      try {
        const found = await send<Evaluation>('POST', `v1/pools/${part(pool.name)}/autoscale/evaluate`, { formula: text.value });
        if (mine !== number.current) return;
        outcome.value = found;
        said.value = undefined;
      } catch (error) {
        if (mine === number.current) { outcome.value = undefined; said.value = error as Problem; }
      }
    }, 150);
    return () => clearTimeout(timer);
  }, [text.value]);
  const error = outcome.value?.error;
  const use = async () => {
    try {
      await send('PATCH', `v1/pools/${part(pool.name)}`, { autoscale: { by: 'formula', formula: text.value } });
      localStorage.removeItem(kept);
      changed();
    } catch (failed) { said.value = failed as Problem; }
  };
  return (
    <>
      <p>{t('sizedBy')}: {pool.autoscale.by === 'hand' ? t('byHand') : pool.autoscale.by}</p>
      <label class="stack">{t('formula')}
        <textarea class="code" rows={8} spellcheck={false} data-filter value={text.value} aria-describedby="formula-result"
          onInput={(event) => { text.value = event.currentTarget.value; localStorage.setItem(kept, text.value); }} />
      </label>
      <div id="formula-result" aria-live="polite">
        <h2>{t('evaluate')}</h2>
        {error && <p class="said">{error.line ? t('formulaError', { line: error.line, column: error.column, message: error.message }) : error.message}</p>}
        {outcome.value && !error && (
          <>
            <p class="num">{outcome.value.results.split(';').filter(Boolean).map((one) => <span key={one} class="chip">{one}</span>)}</p>
            {Object.keys(outcome.value.variables).length > 0 && (
              <dl class="facts">
                {Object.entries(outcome.value.variables).map(([name, value]) => <div key={name}><dt class="num">{name}</dt><dd class="num">{value}</dd></div>)}
              </dl>
            )}
          </>
        )}
      </div>
      <Said error={said.value} />
      <button class="main" disabled={!outcome.value || !!error} onClick={() => void use()}>{t('useFormula')}</button>
    </>
  );
}

function Chart({ lines }: { lines: PoolHistory[] }) {
  const box = useRef<HTMLDivElement>(null);
  const dark = isDark();
  useEffect(() => {
    let gone = false;
    let end = () => {};
    // Only who looks at a chart loads what draws it.
    void import('../chart').then(({ sizeChart }) => {
      if (!gone && box.current) end = sizeChart(box.current, lines, [t('target'), t('nodes')]);
    });
    return () => { gone = true; end(); };
  }, [lines, dark]);
  return <div class="chart" ref={box} role="img" aria-label={t('history')} />;
}

function History({ pool }: { pool: string }) {
  const history = useResource(`history ${pool}`, (signal) => get<Page<PoolHistory>>(`v1/pools/${part(pool)}/history?limit=500`, signal),
    (event) => event.pool === pool);
  return (
    <Face data={history.data?.items} error={history.error} retry={history.refresh} empty={t('noHistory')}>
      {() => (
        <>
          <Chart lines={history.data?.items ?? []} />
          <div class="scroll" tabIndex={0} role="region" aria-label={t('history')}>
            <table class="list">
              <thead><tr><th scope="col">{t('time')}</th><th scope="col" class="right">{t('target')}</th><th scope="col" class="right">{t('nodes')}</th><th scope="col">{t('why')}</th></tr></thead>
              <tbody>
                {[...(history.data?.items ?? [])].reverse().slice(0, 200).map((line, index) => (
                  <tr key={index}>
                    <td class="num"><time dateTime={line.time} title={exact(line.time)}>{clockTime(line.time)}</time></td>
                    <td class="right num">{line.target.dedicated + line.target.low_priority}</td>
                    <td class="right num">{line.present.dedicated + line.present.low_priority}</td>
                    <td>{line.reason}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </Face>
  );
}

function Resize({ pool, changed }: { pool: PoolRecord; changed: () => void }) {
  const said = useSignal<Problem | undefined>(undefined);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    try {
      await send('PATCH', `v1/pools/${part(pool.name)}`, { dedicated: Number(form.get('dedicated')), low_priority: Number(form.get('low')) });
      said.value = undefined;
      changed();
    } catch (error) { said.value = error as Problem; }
  };
  return (
    <form class="row wrap tools" onSubmit={(event) => void submit(event as SubmitEvent)}>
      <label>{t('nodesWanted')} <input name="dedicated" type="number" min={0} defaultValue={String(pool.nodes.target_dedicated)} key={`d${pool.nodes.target_dedicated}`} /></label>
      <label>{t('lowPriorityWanted')} <input name="low" type="number" min={0} defaultValue={String(pool.nodes.target_low_priority)} key={`l${pool.nodes.target_low_priority}`} /></label>
      <button>{t('resize')}</button>
      <Said error={said.value} />
    </form>
  );
}

export function NodeActions({ node, changed }: { node: Node; changed: () => void }) {
  const asking = useSignal(false);
  const said = useSignal<Problem | undefined>(undefined);
  const act = async (verb: string) => {
    said.value = undefined;
    try { await send('POST', `v1/nodes/${part(node.name)}/${verb}`, {}); changed(); } catch (error) { said.value = error as Problem; }
  };
  const running = node.running.join(', ');
  return (
    <span class="row">
      {node.state === 'draining'
        ? <button class="small" onClick={() => void act('resume')} aria-label={`${t('resume')} ${node.name}`}>{t('resume')}</button>
        : <button class="small" onClick={() => void act('drain')} aria-label={`${t('drain')} ${node.name}`}>{t('drain')}</button>}
      <button class="small danger" onClick={() => { asking.value = true; }} aria-label={`${t('evict')} ${node.name}`}>{t('evict')}</button>
      {said.value && <span class="said" role="alert">{said.value.message}</span>}
      {asking.value && (
        <Ask yes={t('evict')} no={t('cancel')} onNo={() => { asking.value = false; }}
          question={running ? t('confirmEvict', { node: node.name, running }) : t('confirmEvictIdle', { node: node.name })}
          onYes={() => { asking.value = false; void act('evict'); }} />
      )}
    </span>
  );
}

export function Pool({ name }: { name: string }) {
  const concerns = (event: Event) => event.pool === name || event.kind.startsWith('node.') || event.kind.startsWith('attempt.');
  const pool = useResource(`pool ${name}`, (signal) => get<PoolRecord>(`v1/pools/${part(name)}`, signal), concerns, 10_000);
  const nodes = useResource(`nodes ${name}`, (signal) => all<Node>(`v1/nodes?pool=${part(name)}`, undefined, signal), concerns, 3_000);
  const tab = query.value.get('tab') ?? 'nodes';
  useEffect(() => { document.title = `${name} · Slipway`; }, []);
  const again = () => { pool.refresh(); nodes.refresh(); };
  return (
    <Face data={pool.data} error={pool.error} retry={pool.refresh}>
      {() => pool.data && (
        <>
          <div class="title">
            <h1>{pool.data.name}</h1>
            <span class="dim">{word(pool.data.state)}</span>
            <span class="num">{count(pool.data.nodes.busy)} {t('busy')} · {count(pool.data.nodes.idle)} {t('idle')} · {t('target')} {count(pool.data.nodes.target)}</span>
            <span class="dim">{pool.data.cores_per_node} {t('cores')} · {size(pool.data.memory_per_node)}{pool.data.gpus_per_node > 0 && ` · ${pool.data.gpus_per_node} ${t('gpus')}`}</span>
          </div>
          {pool.data.notes.map((note) => <p key={note} class="line dim">{note}</p>)}
          {pool.data.resize.errors?.map((error) => <p key={error.message} class="said">{error.code}: {error.message}</p>)}
          <Strip nodes={nodes.data ?? []} label={t('nodeStrip', { pool: name })} />
          <div class="split">
            <Tabs chosen={tab} to={(one) => href(`/pools/${part(name)}${one === 'nodes' ? '' : `?tab=${one}`}`)}
              tabs={[['nodes', 'nodes', count(nodes.data?.length ?? 0)], ['history', 'history'], ['autoscale', 'autoscale'], ['events', 'events']]} />
            <div>
              {tab === 'nodes' && (
                <>
                  <Resize pool={pool.data} changed={again} />
                  <Face data={nodes.data} error={nodes.error} retry={nodes.refresh} empty={t('noNodes')}>
                    {() => (
                      <Table items={nodes.data ?? []} keyOf={(node) => node.name} label={t('nodes')} columns={[
                        { id: 'node', title: t('node'), narrow: true, cell: (node) => <NodeLink name={node.name} /> },
                        { id: 'state', title: t('state'), narrow: true, cell: (node) => <State state={node.state} /> },
                        { id: 'cores', title: t('cores'), number: true, cell: (node) => t('of', { used: node.used.cores, all: node.cores }) },
                        { id: 'memory', title: t('memory'), number: true, cell: (node) => t('of', { used: size(node.used.memory), all: size(node.memory) }) },
                        { id: 'running', title: t('runningHere'), cell: (node) => node.running.slice(0, 3).map((task) => <span key={task}><TaskName name={task} /> </span>) },
                        { id: 'since', title: t('since'), number: true, cell: (node) => <Ago time={node.changed_at} /> },
                        { id: 'act', title: t('actions'), narrow: true, cell: (node) => <NodeActions node={node} changed={again} /> },
                        { id: 'reason', title: t('why'), cell: (node) => <span class="dim">{node.reason}</span> },
                      ]} />
                    )}
                  </Face>
                </>
              )}
              {tab === 'history' && <History pool={name} />}
              {tab === 'autoscale' && <Autoscale pool={pool.data} changed={again} />}
              {tab === 'events' && <PoolEvents pool={name} />}
            </div>
          </div>
        </>
      )}
    </Face>
  );
}

function PoolEvents({ pool }: { pool: string }) {
  const events = useResource(`events of ${pool}`, (signal) => get<Page<Event>>(`v1/events?newest=true&limit=300&pool=${part(pool)}`, signal),
    (event) => event.pool === pool);
  return (
    <Face data={events.data?.items} error={events.error} retry={events.refresh} empty={t('noEvents')}>
      {() => (
        <div class="scroll" tabIndex={0} role="region" aria-label={t('events')}>
          <table class="list"><tbody>
            {[...(events.data?.items ?? [])].reverse().map((event) => (
              <tr key={event.id}>
                <td class="num dim"><time dateTime={event.time} title={exact(event.time)}>{clockTime(event.time)}</time></td>
                <td class="num">{event.node ?? ''}</td><td>{event.text}</td>
              </tr>
            ))}
          </tbody></table>
        </div>
      )}
    </Face>
  );
}
