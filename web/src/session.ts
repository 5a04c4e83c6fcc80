// Signing in and out. The token lives in a cookie that no script reads.
import { signal } from '@preact/signals';
import { get, onSignedOut, Problem, send, type Service } from './api';
import { connect, disconnect, service } from './live';
import { go, path, query } from './router';

export const signedIn = signal<boolean | undefined>(undefined); // undefined: not known yet

function began() {
  signedIn.value = true;
  void connect();
}

onSignedOut(() => {
  if (signedIn.value === false) return;
  signedIn.value = false;
  disconnect();
  if (path.value === '/login') return;
  const here = path.value + location.search;
  go(`/login${here === '/' ? '' : `?to=${encodeURIComponent(here)}`}`, true);
});

// A link made by `slipway ui` carries its token behind #, which browsers send to nobody.
export async function begin() {
  const link = path.value === '/login' && location.hash.length > 1 ? location.hash.slice(1) : '';
  if (link) {
    history.replaceState(null, '', location.pathname + location.search);
    try {
      await signIn({ link_token: link });
    } catch (error) {
      signInProblem.value = error as Problem;
      signedIn.value = false;
    }
    return;
  }
  try {
    service.value = await get<Service>('v1/service');
    began();
    if (path.value === '/login') proceed();
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return; // onSignedOut has said so
    began(); // the service may come back
  }
}

export const signInProblem = signal<Problem | undefined>(undefined);

function proceed() {
  const to = query.value.get('to') ?? '/';
  go(to.startsWith('/') && !to.startsWith('//') ? to : '/', true);
}

export async function signIn(shown: { token: string } | { link_token: string }) {
  await send('POST', 'v1/login/browser', shown);
  signInProblem.value = undefined;
  proceed();
  began();
}

export async function signInWithPassword(user: string, password: string) {
  const made = await send<{ token: string }>('POST', 'v1/login', { user, password });
  await signIn({ token: made.token });
}

export async function signOut() {
  // A token of a sign-in with a password is revoked; others stay good, and only the browser forgets them.
  try { await send('DELETE', 'v1/login'); } catch { /* it is no such token */ }
  try { await send('DELETE', 'v1/login/browser'); } catch { /* it is signed out already */ }
  signedIn.value = false;
  disconnect();
  go('/login', true);
}
