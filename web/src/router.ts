// The address is the state of a view: path and parameters as signals.
import { computed, signal } from '@preact/signals';

const root = new URL(document.baseURI).pathname; // ends with a slash

function here(): { path: string; query: string } {
  const path = location.pathname;
  return { path: '/' + (path.startsWith(root) ? path.slice(root.length) : ''), query: location.search };
}

const address = signal(here());
export const path = computed(() => address.value.path);
export const query = computed(() => new URLSearchParams(address.value.query));
// The parts of the path between its slashes, decoded.
export const parts = computed(() => path.value.split('/').filter(Boolean).map(decodeURIComponent));

// What stands in an href: relative to the service's root, whatever a proxy put before it.
export function href(to: string): string {
  return root + to.replace(/^\//, '');
}

export function go(to: string, replace = false) {
  if (href(to) !== location.pathname + location.search) {
    if (replace) history.replaceState(null, '', href(to));
    else history.pushState(null, '', href(to));
  }
  const before = address.value.path;
  address.value = here();
  if (before !== address.value.path) scrollTo(0, 0);
}

// Other parameters for this view; an empty one goes away.
export function setQuery(changes: Record<string, string | null>, replace = true) {
  const next = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const text = next.toString();
  go(path.value + (text && `?${text}`), replace);
}

addEventListener('popstate', () => { address.value = here(); });

// Links are links; those to this page's views need no request.
addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(root) || link.pathname.startsWith(`${root}v1/`)) return;
  event.preventDefault();
  go('/' + link.pathname.slice(root.length) + link.search);
});
