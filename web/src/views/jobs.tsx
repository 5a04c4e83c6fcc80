import { useComputed } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Job } from '../api';
import { at, count, duration } from '../format';
import { clock } from '../format';
import { t, word } from '../i18n';
import { jobs, jobsProblem, refreshJobs } from '../jobs-store';
import { Ago, Face, JobLink, State } from '../parts';
import { href, query, setQuery } from '../router';
import { Table, type Column } from '../table';

const states = ['queued', 'running', 'stopping', 'succeeded', 'failed', 'cancelled'];
const ranFor = (job: Job) => (job.started_at ? (job.ended_at ? at(job.ended_at) : Date.now()) - at(job.started_at) : -1);

export const doneOf = (job: Job) => job.tasks.succeeded + job.tasks.failed + job.tasks.cancelled + job.tasks.skipped;

const values: Record<string, (job: Job) => string | number> = {
  job: (job) => Number(job.id.slice(4)), name: (job) => job.name, state: (job) => states.indexOf(job.state),
  pool: (job) => job.pool, user: (job) => job.submitted_by, ran: ranFor, done: (job) => doneOf(job) / job.tasks.total,
  submitted: (job) => job.submitted_at, priority: (job) => job.priority,
};

function Ran({ job }: { job: Job }) {
  if (!job.started_at) return <>–</>;
  return <>{duration((job.ended_at ? at(job.ended_at) : clock.value) - at(job.started_at))}</>;
}

export function jobColumns(): Column<Job>[] {
  return [
    { id: 'job', title: t('job'), sort: true, narrow: true, cell: (job) => <span class="num"><JobLink id={job.id} /></span> },
    { id: 'name', title: t('name'), sort: true, narrow: true, cell: (job) => job.name },
    { id: 'state', title: t('state'), sort: true, narrow: true, cell: (job) => <State state={job.state} /> },
    { id: 'done', title: t('done'), sort: true, number: true, cell: (job) => `${count(doneOf(job))}/${count(job.tasks.total)}` },
    { id: 'ran', title: t('ran'), sort: true, number: true, cell: (job) => <Ran job={job} /> },
    { id: 'submitted', title: t('submitted'), sort: true, number: true, cell: (job) => <Ago time={job.submitted_at} /> },
    { id: 'user', title: t('user'), sort: true, cell: (job) => job.submitted_by },
    { id: 'pool', title: t('pool'), sort: true, cell: (job) => job.pool },
    { id: 'priority', title: t('priority'), sort: true, number: true, cell: (job) => String(job.priority) },
    { id: 'reason', title: t('reason'), cell: (job) => <span class="dim">{job.reason}</span> },
  ];
}

export function Jobs() {
  useEffect(() => { document.title = `${t('jobs')} · Slipway`; void refreshJobs(true); }, []);
  const shown = useComputed(() => {
    const state = query.value.get('state');
    const words = (query.value.get('q') ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const found = (jobs.value ?? []).filter((job) =>
      (!state || job.state === state) &&
      words.every((part) => `${job.id} ${job.name} ${job.submitted_by} ${job.pool}`.toLowerCase().includes(part)));
    const sort = query.value.get('sort') ?? '-job';
    const value = values[sort.replace(/^-/, '')];
    if (!value || sort === '-job') return found;
    const way = sort.startsWith('-') ? -1 : 1;
    return found.map((job) => ({ job, value: value(job) }))
      .sort((a, b) => (a.value < b.value ? -way : a.value > b.value ? way : 0)).map(({ job }) => job);
  });
  const filters = (
    <div class="row tools">
      <input type="search" data-filter aria-label={t('filterJobs')} placeholder={t('filterJobs')} value={query.value.get('q') ?? ''}
        onInput={(event) => setQuery({ q: event.currentTarget.value })} />
      <select aria-label={t('state')} value={query.value.get('state') ?? ''} onChange={(event) => setQuery({ state: event.currentTarget.value })}>
        <option value="">{t('all')}</option>
        {states.map((state) => <option key={state} value={state}>{word(state)}</option>)}
      </select>
      <span class="dim num" role="status">
        {jobs.value && t('jobCount', { shown: count(shown.value.length), all: count(jobs.value.length) })}
      </span>
      <span class="space" />
      <a class="button main" href={href('/new')}>{t('newJob')}</a>
    </div>
  );
  return (
    <section class="full">
      <h1>{t('jobs')}</h1>
      {filters}
      <Face data={jobs.value} error={jobsProblem.value} retry={() => void refreshJobs(true)}
        empty={<>{t('noJobs')} <a href={href('/new')}>{t('submitFirst')}</a></>}>
        {() => shown.value.length === 0
          ? <div class="face dim">{t('noMatch')}</div>
          : <Table items={shown.value} columns={jobColumns()} keyOf={(job) => job.id} label={t('jobs')}
              sort={query.value.get('sort') ?? '-job'} onSort={(sort) => setQuery({ sort: sort === '-job' ? null : sort })} />}
      </Face>
    </section>
  );
}
