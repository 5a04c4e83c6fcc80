// The frame around every view: the bar on top, what is said of the connection, keys.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { clockTime } from './format';
import { language, setLanguage, t, type Text } from './i18n';
import { useKeys } from './keys';
import { connection, lostSince, restartedAt, service } from './live';
import { go, href, parts, path } from './router';
import { signedIn, signOut } from './session';
import { isDark, setTheme, theme } from './theme';
import { Job } from './views/job';
import { Jobs } from './views/jobs';
import { Login } from './views/login';
import { Logs } from './views/logs';
import { New } from './views/new';
import { Node } from './views/node';
import { Overview } from './views/overview';
import { Pool } from './views/pool';
import { Pools } from './views/pools';
import { Task } from './views/task';

function View() {
  const [first, second, third, fourth, fifth, ...more] = parts.value;
  if (first === 'login') return <Login />;
  if (signedIn.value !== true) return <div class="face" aria-busy="true" />;
  if (first === undefined) return <Overview />;
  if (first === 'jobs' && second === undefined) return <Jobs />;
  if (first === 'jobs' && second !== undefined && third === undefined) return <Job key={second} id={second} />;
  if (first === 'jobs' && second !== undefined && third === 'tasks' && fourth !== undefined && more.length === 0) {
    if (fifth === undefined) return <Task key={second + fourth} job={second} name={fourth} />;
    if (fifth === 'logs') return <Logs key={second + fourth} job={second} task={fourth} />;
  }
  if (first === 'pools' && second === undefined) return <Pools />;
  if (first === 'pools' && second !== undefined && third === undefined) return <Pool key={second} name={second} />;
  if (first === 'nodes' && second !== undefined && third === undefined) return <Node key={second} name={second} />;
  if (first === 'new' && second === undefined) return <New />;
  return (
    <div class="face">
      <h1>{t('missing')}</h1>
      <p>{t('missingHint')}</p>
      <a href={href('/')}>{t('toOverview')}</a>
    </div>
  );
}

const places: [string, Text][] = [['/', 'overview'], ['/jobs', 'jobs'], ['/pools', 'pools'], ['/new', 'newJob']];

function Bar({ onKeys }: { onKeys: () => void }) {
  const here = parts.value[0] ?? '';
  return (
    <header class="bar">
      <a class="brand" href={href('/')}><span aria-hidden="true">▲</span> Slipway</a>
      <nav aria-label="Slipway">
        {places.map(([to, text]) => (
          <a key={to} href={href(to)} aria-current={to === `/${here === 'nodes' ? 'pools' : here}` ? 'page' : undefined}>{t(text)}</a>
        ))}
      </nav>
      <span class="space" />
      <span class={`contact ${connection.value}`} role="status">
        <span aria-hidden="true">{connection.value === 'live' ? '●' : connection.value === 'lost' ? '✕' : '○'}</span>{' '}
        {t(connection.value)}
      </span>
      <details class="menu" onKeyDown={(event) => { if (event.key === 'Escape') event.currentTarget.open = false; }}>
        <summary>{service.value?.user ?? t('menu')} <span aria-hidden="true">▾</span></summary>
        <div class="sheet">
          {service.value && <p class="dim">{service.value.workspace} · {service.value.version}</p>}
          <label>{t('theme')}
            <select value={theme.value} onChange={(event) => setTheme(event.currentTarget.value as 'light')}>
              <option value="system">{t('system')}</option>
              <option value="light">{t('light')}</option>
              <option value="dark">{t('dark')}</option>
            </select>
          </label>
          <label>{t('language')}
            <select value={language.value} onChange={(event) => setLanguage(event.currentTarget.value as 'en')}>
              <option value="en">English</option>
              <option value="zh-CN">中文</option>
            </select>
          </label>
          <button onClick={onKeys}>{t('keys')} <kbd>?</kbd></button>
          {signedIn.value && <button onClick={() => void signOut()}>{t('signOut')}</button>}
        </div>
      </details>
    </header>
  );
}

const keyList: [string, Text][] = [
  ['?', 'keyHelp'], ['/', 'keyFilter'], ['g o  g j  g p  g n', 'keyGo'], ['j  k', 'keyMove'], ['Enter', 'keyOpen'],
  ['l', 'keyLogs'], ['c', 'keyCancel'], ['e', 'keyClone'], ['t', 'keyTheme'], ['Esc', 'keyBack'],
];

function Keys({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => { dialog.current?.showModal(); }, []);
  return (
    <dialog ref={dialog} aria-label={t('keys')} onClose={onClose}>
      <h2>{t('keys')}</h2>
      <dl class="keys">
        {keyList.map(([key, text]) => (
          <div key={key}><dt>{key.split('  ').map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{t(text)}</dd></div>
        ))}
      </dl>
      <div class="row end"><button onClick={onClose}>{t('close')}</button></div>
    </dialog>
  );
}

function Notices() {
  const restarted = restartedAt.value;
  const why = service.value?.degraded;
  return (
    <div aria-live="polite">
      {connection.value === 'lost' && (
        <p class="notice again">↻ {t('lostBar', { since: clockTime(new Date(lostSince.value).toISOString()) })}</p>
      )}
      {connection.value === 'live' && restarted && (
        <p class="notice">
          {t('restarted', { time: clockTime(restarted) })}{' '}
          <button class="small" onClick={() => { restartedAt.value = ''; }}>{t('dismiss')}</button>
        </p>
      )}
      {why && <p class="notice bad">✕ {t('degraded', { why })}</p>}
    </div>
  );
}

export function App() {
  const showKeys = useSignal(false);
  useKeys({
    '?': () => { showKeys.value = true; },
    '/': () => { document.querySelector<HTMLElement>('[data-filter]')?.focus(); },
    'g o': () => go('/'), 'g j': () => go('/jobs'), 'g p': () => go('/pools'), 'g n': () => go('/new'),
    t: () => setTheme(isDark() ? 'light' : 'dark'),
    Escape: () => { if (path.value !== '/' && path.value !== '/login') history.back(); },
  });
  document.documentElement.lang = language.value;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>{t('skip')}</a>
      <Bar onKeys={() => { showKeys.value = true; }} />
      <Notices />
      <main id="main" tabIndex={-1}><View /></main>
      {showKeys.value && <Keys onClose={() => { showKeys.value = false; }} />}
    </>
  );
}
