// The REST API (docs/api/openapi.yaml) as values: requests, the types of what comes back, and what went wrong.

export type JobState = 'queued' | 'running' | 'stopping' | 'succeeded' | 'failed' | 'cancelled';
export type TaskState =
  | 'waiting' | 'queued' | 'starting' | 'running' | 'stopping' | 'succeeded' | 'failed' | 'cancelled' | 'skipped';
export type NodeState =
  | 'joining' | 'starting' | 'idle' | 'busy' | 'draining' | 'evicted' | 'lost' | 'start_failed' | 'gone';

export interface Page<T> { items: T[]; next?: string | null }
export interface Service {
  version: string; url: string; started_at: string; service: string; degraded: string | null;
  user: string; workspace: string; nodes: Record<string, number>; jobs: Record<string, number>;
}
export interface Job {
  id: string; name: string; workspace: string; pool: string; priority: number; state: JobState; reason: string;
  held_by: string | null; submitted_by: string; submitted_at: string; started_at: string | null;
  ended_at: string | null; source: string | null; tags?: Record<string, string>;
  tasks: { total: number; waiting: number; queued: number; active: number; succeeded: number; failed: number;
    cancelled: number; skipped: number };
}
export interface TaskSpec { name: string; count?: number; depends_on?: string[]; [key: string]: unknown }
export interface JobSpec { name?: string; tasks: TaskSpec[]; source?: string; [key: string]: unknown }
export interface JobWithSpec extends Job { spec: JobSpec }
export interface Task {
  job: string; name: string; state: TaskState; attempts: number; retries_used: number; evictions: number;
  exit_code: number | null; signal: number | null; reason: string; not_before: string | null; nodes: string[];
}
export interface Attempt {
  task?: string; attempt: number; nodes: string[]; placed_at: string; started_at: string | null;
  ended_at: string | null; end: string | null; exit_code: number | null; signal: number | null;
  process: string | null; detail: string; last_lines: string; memory_peak: number; cpu_time: number;
  processes: number;
}
export interface TaskWithHistory extends Task {
  processes: number; process_names: string[]; last_lines: string; spec: TaskSpec; history: Attempt[];
}
export interface Why {
  job: string; state: JobState; answer: string; last_lines: string;
  tasks: { task: string; state: TaskState; reason: string }[];
}
export interface Plan {
  pool: string | null; notes: string[];
  tasks: { name: string; tasks: number; placed: number; reason: string }[];
}
export interface EntryStates { first: string; states: [TaskState, number][] }
export interface NodeCounts { dedicated: number; low_priority: number }
export interface Pool {
  name: string; owner: string; provisioner: string; state: string; default: boolean;
  nodes: { target: number; target_dedicated: number; target_low_priority: number; joining: number; idle: number;
    busy: number; draining: number; lost: number; [state: string]: number };
  cores_per_node: number; memory_per_node: number; gpus_per_node: number;
  autoscale: { by: string; formula?: string; min?: number; max?: number; interval?: number };
  last_run: { time: string; results: string; error: { code: string; message: string } | null } | null;
  resize: { state: string; errors?: { code: string; message: string }[] };
  created_at: string; notes: string[];
}
export interface PoolHistory {
  time: string; target: NodeCounts; present: NodeCounts; nodes: Record<string, number>; reason: string;
}
export interface Evaluation {
  targets: NodeCounts; variables: Record<string, string>; results: string;
  error: { code: string; line: number; column: number; message: string } | null;
}
export interface Node {
  name: string; pool: string; state: NodeState; reason: string; address: string; host: string; cores: number;
  memory: number; gpus: number; used: { cores: number; memory: number; gpus: number }; running: string[];
  notes: string[]; low_priority: boolean; created_at: string; changed_at: string; evict_by: string | null;
  start_task: { state: string; attempt: number; tries: number; exit_code: number | null; detail: string;
    last_lines: string } | null;
  steps: { state: NodeState; time: string; reason: string }[];
}
export interface QueueLine {
  place: number; job: string; name: string; pool: string; user: string; priority: number; tasks: number;
  nodes: number; since: string; reason: string;
}
export interface Event {
  id: number; time: string; kind: string; job: string | null; task: string | null; attempt: number | null;
  node: string | null; pool: string | null; text: string;
}
export interface Usage { node_seconds: Record<string, number> }

export class Problem extends Error {
  constructor(readonly status: number, message: string, readonly hint = '') {
    super(message);
  }
  get isDenied() { return this.status === 401 || this.status === 403; }
  get isOffline() { return this.status === 0; }
}

// Where the service is: the page's own base, so that a path which a proxy puts before it stays.
export function address(path: string): string {
  return new URL(path.replace(/^\//, ''), document.baseURI).href;
}

// Called where the service no longer knows who asks.
let signedOut: () => void = () => {};
export function onSignedOut(call: () => void) { signedOut = call; }

export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    const said = JSON.parse(text) as { detail?: string; hint?: string };
    return new Problem(response.status, said.detail ?? text, said.hint);
  } catch {
    return new Problem(response.status, text.slice(0, 500) || `HTTP ${response.status}`);
  }
}

export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address(path), { credentials: 'same-origin', ...options });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem(0, String((error as Error).message));
  }
  if (response.status === 401 && !path.startsWith('v1/login')) signedOut();
  if (!response.ok && response.status !== 206) throw await problemOf(response);
  return response;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, { signal: signal ?? null })).json() as Promise<T>;
}

export async function send<T>(method: string, path: string, body?: unknown, type = 'application/json'): Promise<T> {
  const options: RequestInit = { method };
  if (body !== undefined) {
    options.body = typeof body === 'string' ? body : JSON.stringify(body);
    options.headers = { 'Content-Type': type };
  }
  const response = await ask(path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

// Every page of a list; `each` sees them as they come.
export async function all<T>(path: string, each?: (items: T[]) => void, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = [];
  let after = '';
  for (;;) {
    const join = path.includes('?') ? '&' : '?';
    const page = await get<Page<T>>(
      `${path}${join}limit=1000${after && `&after=${encodeURIComponent(after)}`}`, signal);
    items.push(...page.items);
    each?.(items);
    if (!page.next) return items;
    after = page.next;
  }
}

export const part = encodeURIComponent;
export const jobPath = (job: string) => `v1/jobs/${part(job)}`;
export const taskPath = (job: string, task: string) => `${jobPath(job)}/tasks/${part(task)}`;
