// The stream of events, and data that is asked for again when something happened to it.
import { signal, useSignal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ask, get, Problem, type Event, type Page, type Service } from './api';

export const connection = signal<'connecting' | 'live' | 'lost'>('connecting');
export const lostSince = signal(0);
export const service = signal<Service | undefined>(undefined);
// When the service was found started anew: to be told.
export const restartedAt = signal('');
// The newest events, newest first.
export const recent = signal<Event[]>([]);
const recentMax = 200;

type Listener = (events: Event[] | null) => void; // null: anything may have happened
const listeners = new Set<Listener>();
export function onEvents(listener: Listener): () => void {
  listeners.add(listener);
  return () => { listeners.delete(listener); };
}

let last = 0;
let waiting: Event[] = [];
let frame = 0;

// However many come, views hear of them once a frame.
function take(event: Event) {
  if (event.id <= last) return;
  last = event.id;
  waiting.push(event);
  if (!frame) frame = requestAnimationFrame(deliver);
  // No frames are drawn in a tab that nobody sees.
  if (waiting.length > 5000) deliver();
}

function deliver() {
  cancelAnimationFrame(frame);
  frame = 0;
  const events = waiting;
  waiting = [];
  if (events.length === 0) return;
  recent.value = [...events.slice(-recentMax).reverse(), ...recent.value].slice(0, recentMax);
  for (const listener of listeners) listener(events);
}

async function read(stream: ReadableStream<Uint8Array>) {
  const reader = stream.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const messages = text.split('\n\n');
    text = messages.pop() ?? '';
    for (const message of messages)
      for (const line of message.split('\n'))
        if (line.startsWith('data: ')) take(JSON.parse(line.slice(6)) as Event);
  }
}

export async function refreshService(): Promise<Service> {
  const found = await get<Service>('v1/service');
  const before = service.value;
  if (before && before.started_at !== found.started_at) {
    restartedAt.value = found.started_at;
    if (before.service !== found.service) {
      last = 0; // another data folder: its events are numbered anew
      recent.value = [];
    }
  }
  service.value = found;
  return found;
}

let running: AbortController | undefined;

export async function connect() {
  running?.abort();
  const stop = (running = new AbortController());
  let patience = 250;
  while (!stop.signal.aborted) {
    const lostBefore = connection.value === 'lost';
    try {
      await refreshService();
      if (last === 0) {
        const page = await get<Page<Event>>(`v1/events?newest=true&limit=${recentMax}`);
        recent.value = [...page.items].reverse();
        last = page.items.at(-1)?.id ?? 0;
      }
      const response = await ask(`v1/events?follow=true&after=${last}`, { signal: stop.signal });
      connection.value = 'live';
      patience = 250;
      if (lostBefore) for (const listener of listeners) listener(null);
      if (response.body) await read(response.body);
    } catch (error) {
      if (stop.signal.aborted) return;
      if (error instanceof Problem && error.isDenied) return;
    }
    if (stop.signal.aborted) return;
    if (connection.value !== 'lost') {
      connection.value = 'lost';
      lostSince.value = Date.now();
    }
    await new Promise((again) => setTimeout(again, patience));
    patience = Math.min(patience * 2, 4000);
  }
}

export function disconnect() {
  running?.abort();
  running = undefined;
  last = 0;
  recent.value = [];
  service.value = undefined;
  connection.value = 'connecting';
  known.clear();
}

// What was answered before is shown at once when a view is opened again; the network then refines it.
const known = new Map<string, unknown>();

export interface Resource<T> {
  data: T | undefined;
  error: Problem | undefined;
  refresh: () => void;
}

// Loads when `key` changes, and again when events concern it: at once, then no more often than the service needs
// to answer. `every`: also after so many milliseconds, for what no event tells.
export function useResource<T>(
  key: string | null, load: (signal: AbortSignal) => Promise<T>, concerns: (event: Event) => boolean, every = 0,
): Resource<T> {
  const data: Signal<T | undefined> = useSignal(key ? (known.get(key) as T | undefined) : undefined);
  const error = useSignal<Problem | undefined>(undefined);
  const again = useSignal<() => void>(() => {});
  useEffect(() => {
    if (key === null) return;
    data.value = known.get(key) as T | undefined;
    error.value = undefined;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let busy = false;
    let wanted = false;
    let earliest = 0;
    const run = async () => {
      if (busy) { wanted = true; return; }
      const wait = earliest - performance.now();
      if (wait > 0) {
        timer ??= setTimeout(() => { timer = undefined; void run(); }, wait);
        return;
      }
      busy = true;
      wanted = false;
      const begun = performance.now();
      try {
        const found = await load(stop.signal);
        if (stop.signal.aborted) return;
        known.set(key, found);
        data.value = found;
        error.value = undefined;
      } catch (failed) {
        if (stop.signal.aborted) return;
        error.value = failed instanceof Problem ? failed : new Problem(0, String(failed));
      }
      busy = false;
      earliest = performance.now() + Math.max(200, 3 * (performance.now() - begun));
      if (wanted) void run();
    };
    again.value = () => { earliest = 0; void run(); };
    void run();
    const off = onEvents((events) => { if (events === null || events.some(concerns)) void run(); });
    const ticking = every ? setInterval(() => { if (!document.hidden) void run(); }, every) : undefined;
    return () => {
      stop.abort();
      clearTimeout(timer);
      clearInterval(ticking);
      off();
    };
  }, [key]);
  return { data: data.value, error: error.value, refresh: () => again.value() };
}
