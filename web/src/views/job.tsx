import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { all, get, jobPath, part, send, Problem, type Attempt, type Event, type Job as JobRecord, type JobWithSpec, type Page, type Task, type TaskSpec, type TaskState, type Why } from '../api';
import { clockTime, count, exact, span } from '../format';
import { t, word } from '../i18n';
import { useKeys } from '../keys';
import { useResource } from '../live';
import { Ago, Ask, Face, NodeLink, PoolLink, Said, State, Tabs } from '../parts';
import { go, href, query, setQuery } from '../router';
import { Table } from '../table';
import { toYaml } from '../yaml';
import { endOf, story } from './attempts';
import { Grid } from './grid';
import { doneOf } from './jobs';

const taskStates: TaskState[] = ['waiting', 'queued', 'starting', 'running', 'stopping', 'succeeded', 'failed', 'cancelled', 'skipped'];
const gridFrom = 60; // tasks, from which on they are drawn as a grid

const logsOf = (job: string, task: string) => `/jobs/${part(job)}/tasks/${part(task)}/logs`;

// Tasks in columns by how many others come before them.
function Graph({ job, specs, tasks }: { job: string; specs: TaskSpec[]; tasks: Task[] }) {
  const depth = new Map<string, number>();
  const depthOf = (spec: TaskSpec): number => {
    const known = depth.get(spec.name);
    if (known !== undefined) return known;
    depth.set(spec.name, 0); // the service refuses circles
    const before = (spec.depends_on ?? []).map((name) => specs.find((other) => other.name === name)).filter((other) => !!other);
    const found = before.length ? 1 + Math.max(...before.map(depthOf)) : 0;
    depth.set(spec.name, found);
    return found;
  };
  for (const spec of specs) depthOf(spec);
  const columns = Math.max(...depth.values()) + 1;
  const stateOf = (spec: TaskSpec) => tasks.find((task) => task.name === spec.name || task.name.startsWith(`${spec.name}[`));
  return (
    <ol class="graph">
      {Array.from({ length: columns }, (_, column) => (
        <li key={column}>
          <ul>
            {specs.filter((spec) => depth.get(spec.name) === column).map((spec) => {
              const task = stateOf(spec);
              return (
                <li key={spec.name} class="graphtask">
                  <a href={href(`/jobs/${part(job)}/tasks/${part(task?.name ?? spec.name)}`)}>{spec.name}{spec.count ? ` × ${count(spec.count)}` : ''}</a>
                  {task && !spec.count && <State state={task.state} />}
                  {spec.depends_on && spec.depends_on.length > 0 && <span class="dim">{t('dependsOn')} {spec.depends_on.join(', ')}</span>}
                </li>
              );
            })}
          </ul>
        </li>
      ))}
    </ol>
  );
}

function Tasks({ job }: { job: JobWithSpec }) {
  const state = query.value.get('state') ?? '';
  const total = job.tasks.total;
  const asGrid = query.value.get('as') === 'grid' || (query.value.get('as') !== 'list' && total >= gridFrom);
  const path = `${jobPath(job.id)}/tasks${state && `?state=${state}`}`;
  const tasks = useResource<Task[]>(asGrid ? null : `tasks ${job.id} ${state}`,
    async (signal) => total <= 5000 ? all<Task>(path, undefined, signal)
      : (await get<Page<Task>>(`${path}${state ? '&' : '?'}limit=1000`, signal)).items,
    (event) => event.job === job.id);
  return (
    <>
      <div class="row tools">
        <span class="choice" role="group" aria-label={t('tasks')}>
          <button aria-pressed={!asGrid} onClick={() => setQuery({ as: 'list' })}>{t('list')}</button>
          <button aria-pressed={asGrid} onClick={() => setQuery({ as: 'grid' })}>{t('grid', { n: count(total) })}</button>
        </span>
        {!asGrid && (
          <select data-filter aria-label={t('state')} value={state} onChange={(event) => setQuery({ state: event.currentTarget.value })}>
            <option value="">{t('all')}</option>
            {taskStates.map((one) => <option key={one} value={one}>{word(one)}</option>)}
          </select>
        )}
      </div>
      {asGrid ? <Grid job={job.id} /> : (
        <Face data={tasks.data} error={tasks.error} retry={tasks.refresh} empty={t('noTasks')}>
          {() => (
            <>
              {!state && job.spec.tasks.some((spec) => spec.depends_on?.length) && <Graph job={job.id} specs={job.spec.tasks} tasks={tasks.data ?? []} />}
              <Table items={tasks.data ?? []} keyOf={(task) => task.name} label={t('tasks')} columns={[
                { id: 'task', title: t('task'), narrow: true, cell: (task) => <a class="num" href={href(`/jobs/${part(job.id)}/tasks/${part(task.name)}`)}>{task.name}</a> },
                { id: 'state', title: t('state'), narrow: true, cell: (task) => <State state={task.state} /> },
                { id: 'attempts', title: t('attempts'), number: true, cell: (task) => String(task.attempts) },
                { id: 'code', title: t('exitCode'), number: true, cell: (task) => task.signal ? `${t('signal')} ${task.signal}` : String(task.exit_code ?? '–') },
                { id: 'nodes', title: t('nodes'), cell: (task) => task.nodes.slice(0, 6).map((node) => <span key={node}><NodeLink name={node} /> </span>) },
                { id: 'logs', title: t('logs'), narrow: true, cell: (task) => <a href={href(logsOf(job.id, task.name))} aria-label={`${t('logs')} ${task.name}`}>{t('logs')}</a> },
                { id: 'reason', title: t('why'), cell: (task) => <span class="dim">{task.reason}</span> },
              ]} />
            </>
          )}
        </Face>
      )}
    </>
  );
}

function Summary({ job, why }: { job: JobWithSpec; why: Why | undefined }) {
  const attempts = useResource(`attempts ${job.id}`, (signal) => get<Page<Attempt>>(`${jobPath(job.id)}/attempts?limit=100`, signal),
    (event) => event.job === job.id && event.kind.startsWith('attempt.'));
  const byTask = new Map<string, Attempt[]>();
  for (const attempt of attempts.data?.items ?? []) {
    const known = byTask.get(attempt.task ?? '');
    if (known) known.push(attempt);
    else byTask.set(attempt.task ?? '', [attempt]);
  }
  // Those that have a story first: more than one attempt, or an end that is no success.
  const told = [...byTask].sort(([, a], [, b]) => b.length - a.length).slice(0, 12);
  return (
    <>
      {why && (
        <section>
          <h2>{t('why')}</h2>
          <p class="why">{why.answer}</p>
          {why.tasks.length > 0 && (
            <table class="list"><tbody>
              {why.tasks.map((task) => (
                <tr key={task.task}>
                  <td><a class="num" href={href(`/jobs/${part(job.id)}/tasks/${part(task.task)}`)}>{task.task}</a></td>
                  <td><State state={task.state} /></td><td>{task.reason}</td>
                </tr>
              ))}
            </tbody></table>
          )}
          {why.last_lines && <><h3>{t('lastLines')}</h3><pre tabIndex={0}>{why.last_lines}</pre></>}
        </section>
      )}
      <section>
        <h2>{t('story')}</h2>
        <Face data={attempts.data} error={attempts.error} retry={attempts.refresh}>
          {() => told.length === 0 ? <p class="dim">{t('noAttempts')}</p> : (
            <table class="list"><tbody>
              {told.map(([task, list]) => (
                <tr key={task}>
                  <td><a class="num" href={href(`/jobs/${part(job.id)}/tasks/${part(task)}`)}>{task}</a></td>
                  <td class="num dim">{endOf(list.at(-1) as Attempt)}</td>
                  <td>{story(list.slice(-4)).join(', ')}</td>
                </tr>
              ))}
            </tbody></table>
          )}
        </Face>
      </section>
      <section>
        <h2>{t('summary')}</h2>
        <dl class="facts">
          <div><dt>{t('pool')}</dt><dd><PoolLink name={job.pool} /></dd></div>
          <div><dt>{t('user')}</dt><dd>{job.submitted_by}</dd></div>
          <div><dt>{t('priority')}</dt><dd class="num">{job.priority}</dd></div>
          <div><dt>{t('submitted')}</dt><dd class="num">{exact(job.submitted_at)}</dd></div>
          <div><dt>{t('started')}</dt><dd class="num">{job.started_at ? exact(job.started_at) : '–'}</dd></div>
          <div><dt>{t('ended')}</dt><dd class="num">{job.ended_at ? exact(job.ended_at) : '–'}</dd></div>
          {taskStates.concat([]).map((state) => {
            const n = (job.tasks as Record<string, number>)[state];
            return n ? <div key={state}><dt><State state={state} /></dt><dd class="num">{count(n)}</dd></div> : null;
          })}
          {job.tasks.active > 0 && <div><dt><State state="running" /></dt><dd class="num">{count(job.tasks.active)}</dd></div>}
          {Object.entries(job.tags ?? {}).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
        </dl>
      </section>
    </>
  );
}

export function Events({ of, concerns }: { of: string; concerns: (event: Event) => boolean }) {
  const events = useResource(`events ${of}`, (signal) => get<Page<Event>>(`v1/events?newest=true&limit=500&${of}`, signal), concerns);
  return (
    <Face data={events.data?.items} error={events.error} retry={events.refresh} empty={t('noEvents')}>
      {() => (
        <div class="scroll" tabIndex={0} role="region" aria-label={t('events')}>
          <table class="list"><tbody>
            {[...(events.data?.items ?? [])].reverse().map((event) => (
              <tr key={event.id}>
                <td class="num dim"><time dateTime={event.time} title={exact(event.time)}>{clockTime(event.time)}</time></td>
                <td class="num">{event.task ?? event.node ?? ''}</td><td class="dim">{event.kind}</td><td>{event.text}</td>
              </tr>
            ))}
          </tbody></table>
        </div>
      )}
    </Face>
  );
}

export function Job({ id }: { id: string }) {
  const concerns = (event: Event) => event.job === id || event.job === job.data?.id;
  const job = useResource(`job ${id}`, (signal) => get<JobWithSpec>(jobPath(id), signal), concerns);
  const why = useResource(`why ${id}`, (signal) => get<Why>(`${jobPath(id)}/why`, signal),
    (event) => concerns(event) || event.kind.startsWith('node.'), 5_000);
  const asking = useSignal(false);
  const said = useSignal<Problem | undefined>(undefined);
  const record = job.data;
  const isOver = record ? ['succeeded', 'failed', 'cancelled'].includes(record.state) : true;
  const tab = query.value.get('tab') ?? 'summary';
  const firstTask = record?.spec.tasks[0];
  const firstName = firstTask ? (firstTask.count ? `${firstTask.name}[0]` : firstTask.name) : '';
  useEffect(() => { document.title = `${record ? `${record.name} · ${record.id}` : id} · Slipway`; }, [record?.name]);
  const act = async (work: () => Promise<unknown>) => {
    said.value = undefined;
    try { await work(); job.refresh(); } catch (error) { said.value = error as Problem; }
  };
  const clone = () => {
    if (!record) return;
    go(`/new?from=${part(record.id)}`);
  };
  useKeys({
    c: () => { if (record && !isOver) asking.value = true; },
    e: clone,
    l: () => { if (firstName) go(logsOf(id, firstName)); },
  });
  return (
    <Face data={record} error={job.error} retry={job.refresh}>
      {() => record && (
        <>
          <div class="title">
            <h1><span class="num">{record.id}</span> · {record.name}</h1>
            <State state={record.state} />
            {record.held_by && <span class="dim">{t('held')} · {record.held_by}</span>}
            <span class="num">{span(record.started_at, record.ended_at)}</span>
            <span class="dim">{t('taskCount', { done: count(doneOf(record)), total: count(record.tasks.total) })}</span>
            <span class="dim">{t('by', { user: record.submitted_by })} <Ago time={record.submitted_at} /></span>
            <span class="space" />
            {!isOver && <button onClick={() => void act(() => send<JobRecord>('PATCH', jobPath(record.id), { held: !record.held_by }))}>{record.held_by ? t('release') : t('hold')}</button>}
            {!isOver && <button class="danger" onClick={() => { asking.value = true; }}>{t('cancelJob')}</button>}
            {isOver && <button onClick={() => void act(async () => { const made = await send<JobRecord>('POST', `${jobPath(record.id)}/resubmit`, {}); go(`/jobs/${made.id}`); })}>{t('resubmit')}</button>}
            <button onClick={clone}>{t('clone')}</button>
          </div>
          {(why.data?.answer ?? record.reason) && <p class="line dim">{why.data?.answer ?? record.reason}</p>}
          <Said error={said.value} />
          <div class="split">
            <Tabs chosen={tab} to={(one) => href(`/jobs/${part(id)}${one === 'summary' ? '' : `?tab=${one}`}`)} tabs={[
              ['summary', 'summary'], ['tasks', 'tasks', `${count(doneOf(record))}/${count(record.tasks.total)}`], ['logs', 'logs'],
              ['file', 'file'], ['events', 'events'],
            ]} />
            <div>
              {tab === 'summary' && <Summary job={record} why={why.data} />}
              {tab === 'tasks' && <Tasks job={record} />}
              {tab === 'logs' && (
                <ul class="plainlist">
                  {record.spec.tasks.slice(0, 200).map((spec) => {
                    const name = spec.count ? `${spec.name}[0]` : spec.name;
                    return <li key={spec.name}><a href={href(logsOf(id, name))}>{t('logOf', { task: name })}</a></li>;
                  })}
                </ul>
              )}
              {tab === 'file' && <pre class="file" tabIndex={0}>{toYaml(record.spec)}</pre>}
              {tab === 'events' && <Events of={`job=${part(record.id)}`} concerns={concerns} />}
            </div>
          </div>
          {asking.value && (
            <Ask yes={t('stopIt')} no={t('keepIt')} onNo={() => { asking.value = false; }}
              question={t(record.tasks.active ? 'confirmCancel' : 'confirmCancelNone', { job: record.id, name: record.name, n: count(record.tasks.active) })}
              onYes={() => { asking.value = false; void act(() => send('POST', `${jobPath(record.id)}/cancel`, {})); }} />
          )}
        </>
      )}
    </Face>
  );
}
