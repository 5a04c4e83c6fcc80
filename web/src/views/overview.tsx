import { useEffect } from 'preact/hooks';
import { all, get, part, type Job, type Node, type Page, type Pool, type QueueLine, type Usage } from '../api';
import { clockTime, count, span } from '../format';
import { t } from '../i18n';
import { connection, recent, service, useResource } from '../live';
import { Copy, Face, JobLink, PoolLink, State, TaskName, kinds } from '../parts';
import { href } from '../router';
import { word } from '../i18n';

export function Strip({ nodes, label }: { nodes: Node[]; label: string }) {
  return (
    <ul class="strip" aria-label={label}>
      {nodes.map((node) => (
        <li key={node.name}>
          <a class={`cell ${kinds[node.state]?.kind ?? 'wait'} ${node.state}`} href={href(`/nodes/${part(node.name)}`)}
            title={`${node.name} · ${word(node.state)}${node.reason ? ` · ${node.reason}` : ''}`}
            aria-label={`${node.name} ${word(node.state)}`}>
            <span aria-hidden="true">{kinds[node.state]?.mark ?? '○'}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Goodput({ pool }: { pool: string }) {
  const usage = useResource(`usage ${pool}`, (signal) => get<Usage>(`v1/pools/${part(pool)}/usage`, signal),
    (event) => event.kind === 'attempt.ended', 10_000);
  const seconds = usage.data?.node_seconds;
  if (!seconds) return <span class="dim">–</span>;
  // Of the time in which they were not idle.
  const busy = (seconds['wall'] ?? 0) - (seconds['idle'] ?? 0);
  const good = seconds['computing'] ?? 0;
  return <span class="num" title={t('goodputHint')}>{busy > 0 ? `${((100 * good) / busy).toFixed(1)} %` : '–'}</span>;
}

const commands: ['emptyPool' | 'emptyRun' | 'emptyTrain', 'emptyPoolText' | 'emptyRunText' | 'emptyTrainText', string][] = [
  ['emptyPool', 'emptyPoolText', 'slipway pool create lab --nodes 2'],
  ['emptyRun', 'emptyRunText', 'slipway run -- echo hello'],
  ['emptyTrain', 'emptyTrainText', 'slipway job submit examples/mnist-ps.yaml --follow'],
];

function Empty() {
  return (
    <section>
      <p>{t('empty')}</p>
      <div class="cards">
        {commands.map(([title, text, command]) => (
          <article key={title} class="card">
            <h2>{t(title)}</h2>
            <p class="dim">{t(text)}</p>
            <div class="row"><code tabIndex={0}>{command}</code><Copy text={command} /></div>
          </article>
        ))}
      </div>
    </section>
  );
}

function JobLines({ jobs, none }: { jobs: Job[]; none: string }) {
  if (jobs.length === 0) return <p class="dim">{none}</p>;
  return (
    <table class="list">
      <tbody>
        {jobs.map((job) => (
          <tr key={job.id}>
            <td class="num"><JobLink id={job.id} /></td>
            <td>{job.name}</td>
            <td><State state={job.state} /></td>
            <td class="right num">{span(job.started_at, job.ended_at)}</td>
            <td class="dim">{job.reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Overview() {
  useEffect(() => { document.title = 'Slipway'; });
  const pools = useResource('pools', (signal) => all<Pool>('v1/pools', undefined, signal),
    (event) => !!event.pool || event.kind.startsWith('node.'));
  const nodes = useResource('nodes', (signal) => all<Node>('v1/nodes', undefined, signal),
    (event) => event.kind.startsWith('node.') || event.kind.startsWith('attempt.') || event.kind.startsWith('pool.'), 5_000);
  const queue = useResource('queue', (signal) => get<Page<QueueLine>>('v1/queue?limit=50', signal),
    (event) => event.kind.startsWith('job.') || event.kind.startsWith('attempt.') || event.kind.startsWith('task.') || event.kind.startsWith('node.'), 10_000);
  const running = useResource('running', (signal) => get<Page<Job>>('v1/jobs?state=running&limit=20', signal),
    (event) => event.kind.startsWith('job.'));
  const failed = useResource('failed', (signal) => get<Page<Job>>('v1/jobs?state=failed&limit=100', signal),
    (event) => event.kind.startsWith('job.'));
  const today = new Date().setHours(0, 0, 0, 0);
  const failedToday = failed.data?.items.filter((job) => Date.parse(job.ended_at ?? job.submitted_at) >= today);
  const isEmpty = pools.data?.length === 0 && Object.values(service.value?.jobs ?? {}).every((n) => n === 0) &&
    !recent.value.some((event) => event.kind.startsWith('job.') || event.kind.startsWith('pool.'));
  return (
    <div class="overview">
      <h1 class="unseen">{t('overview')}</h1>
      {isEmpty && <Empty />}
      <section>
        <h2>{t('pools')}</h2>
        <Face data={pools.data} error={pools.error} retry={pools.refresh} empty={t('noPools')}>
          {() => pools.data?.map((pool) => {
            const own = (nodes.data ?? []).filter((node) => node.pool === pool.name);
            return (
              <div key={pool.name} class="poolline">
                <span class="poolname"><PoolLink name={pool.name} /></span>
                <Strip nodes={own} label={t('nodeStrip', { pool: pool.name })} />
                <span class="dim counts">
                  {count(pool.nodes.busy)} {t('busy')} · {count(pool.nodes.idle)} {t('idle')} · {t('target')} {count(pool.nodes.target)}
                  {' · '}{t('goodput')} <Goodput pool={pool.name} />
                </span>
              </div>
            );
          })}
        </Face>
      </section>
      <div class="columns">
        <section>
          <h2>{t('runningJobs')}</h2>
          <Face data={running.data} error={running.error} retry={running.refresh}>
            {() => <JobLines jobs={running.data?.items ?? []} none={t('noRunning')} />}
          </Face>
        </section>
        <section>
          <h2>{t('queue')}</h2>
          <Face data={queue.data} error={queue.error} retry={queue.refresh}>
            {() => queue.data?.items.length === 0 ? <p class="dim">{t('noQueue')}</p> : (
              <table class="list">
                <tbody>
                  {queue.data?.items.map((line) => (
                    <tr key={`${line.job} ${line.pool} ${line.place}`}>
                      <td class="right num">{line.place}</td>
                      <td class="num"><JobLink id={line.job} /></td>
                      <td>{line.name}</td>
                      <td class="right num">{count(line.tasks)}</td>
                      <td class="dim">{line.reason}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Face>
        </section>
        <section>
          <h2>{t('failedToday')}</h2>
          <Face data={failedToday} error={failed.error} retry={failed.refresh}>
            {() => <JobLines jobs={failedToday ?? []} none={t('noFailed')} />}
          </Face>
        </section>
        <section>
          <h2>{t('whatHappens')}</h2>
          <div class={connection.value === 'lost' ? 'stale' : undefined}>
            {recent.value.length === 0 ? <p class="dim">{t('noEvents')}</p> : (
              <table class="list">
                <tbody>
                  {recent.value.slice(0, 15).map((event) => (
                    <tr key={event.id}>
                      <td class="num dim"><time dateTime={event.time} title={event.time}>{clockTime(event.time)}</time></td>
                      <td>{event.job ? (event.task ? <TaskName name={`${event.job}/${event.task}`} /> : <span class="num"><JobLink id={event.job} /></span>) : (event.node ?? event.pool ?? '')}</td>
                      <td>{event.text}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </div>
        </section>
      </div>
    </div>
  );
}
