// The jobs, all of them: loaded once, page by page, then kept up to date by events.
import { signal } from '@preact/signals';
import { all, get, jobPath, Problem, type Job, type Page } from './api';
import { onEvents, service } from './live';

export const jobs = signal<Job[] | undefined>(undefined); // newest first
export const jobsProblem = signal<Problem | undefined>(undefined);
const number = (id: string) => Number(id.slice(4));

let loading = false;
let stale = false;
const changed = new Set<string>();

function put(found: Job[], gone: string[] = []) {
  const byId = new Map((jobs.value ?? []).map((job) => [job.id, job]));
  for (const job of found) byId.set(job.id, job);
  for (const id of gone) byId.delete(id);
  jobs.value = [...byId.values()].sort((a, b) => number(b.id) - number(a.id));
}

async function loadAll() {
  const fresh = jobs.value === undefined;
  const items = await all<Job>('v1/jobs', (some) => { if (fresh) jobs.value = [...some]; });
  jobs.value = items;
}

// A few that changed are asked for alone; many are mostly among the newest.
async function loadChanged() {
  const ids = [...changed];
  changed.clear();
  if (ids.length > 8) {
    const page = await get<Page<Job>>('v1/jobs?limit=1000');
    put(page.items);
    const oldest = page.items.at(-1);
    const others = ids.filter((id) => oldest && page.next && number(id) < number(oldest.id));
    if (others.length > 50) return loadAll();
    ids.splice(0, ids.length, ...others);
  }
  const gone: string[] = [];
  const found = await Promise.all(ids.map(async (id) => {
    try {
      return await get<Job>(jobPath(id));
    } catch (error) {
      if (error instanceof Problem && error.status === 404) gone.push(id);
      else if (!(error instanceof Problem && error.isOffline)) throw error;
      return undefined;
    }
  }));
  put(found.filter((job) => job !== undefined), gone);
}

export async function refreshJobs(everything = false) {
  if (everything) stale = true;
  if (loading) return;
  loading = true;
  try {
    while (stale || changed.size > 0 || jobs.value === undefined) {
      const begun = performance.now();
      if (stale || jobs.value === undefined) {
        stale = false;
        await loadAll();
      } else {
        await loadChanged();
      }
      jobsProblem.value = undefined;
      // No more often than the service needs to answer, and never more than five times a second.
      await new Promise((wait) => setTimeout(wait, Math.max(200, 2 * (performance.now() - begun))));
    }
  } catch (error) {
    jobsProblem.value = error instanceof Problem ? error : new Problem(0, String(error));
  }
  loading = false;
}

onEvents((events) => {
  if (jobs.value === undefined) return;
  if (events === null) return void refreshJobs(true);
  for (const event of events) if (event.job) changed.add(event.job);
  if (changed.size > 0) void refreshJobs();
});

let owner = '';
service.subscribe((found) => {
  const now = found ? `${found.service} ${found.user} ${found.workspace}` : '';
  if (now !== owner) jobs.value = undefined;
  owner = now;
});
