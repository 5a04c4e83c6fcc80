// The attempts at a task, and their story in words.
import { kinds, NodeLink, State } from '../parts';
import type { Attempt } from '../api';
import { at, duration, exact, size, span } from '../format';
import { t, word } from '../i18n';

const nodesOf = (attempt: Attempt) => attempt.nodes.slice(0, 4).join(' ') + (attempt.nodes.length > 4 ? ' …' : '');

// "evicted on n3 after 4 m 00 s, back on n5 in 310 ms"
export function story(attempts: Attempt[]): string[] {
  const said: string[] = [];
  for (const [index, attempt] of attempts.entries()) {
    const before = attempts[index - 1];
    if (!attempt.started_at) {
      said.push(t('storyPlaced', { nodes: nodesOf(attempt) }));
    } else if (before?.ended_at) {
      said.push(t('storyBack', { nodes: nodesOf(attempt), time: duration(at(attempt.started_at) - at(before.ended_at)) }));
    } else {
      said.push(t('storyFirst', { nodes: nodesOf(attempt) }));
    }
    if (attempt.ended_at)
      said.push(t('storyEnded', { end: endOf(attempt), time: span(attempt.started_at ?? attempt.placed_at, attempt.ended_at) }));
  }
  return said;
}

export function endOf(attempt: Attempt): string {
  if (!attempt.end) return word('running');
  if (attempt.end === 'exited') return attempt.exit_code === 0 ? word('succeeded') : `${t('exitCode')} ${attempt.exit_code}`;
  if (attempt.end === 'signalled') return `${t('signal')} ${attempt.signal}`;
  return word(attempt.end);
}

function stateOf(attempt: Attempt): string {
  if (!attempt.end) return attempt.started_at ? 'running' : 'starting';
  if (attempt.end === 'exited') return attempt.exit_code === 0 ? 'succeeded' : 'failed';
  return attempt.end in kinds ? attempt.end : 'failed';
}

export function Attempts({ attempts }: { attempts: Attempt[] }) {
  if (attempts.length === 0) return <p class="dim">{t('noAttempts')}</p>;
  return (
    <>
      <p class="story">{story(attempts.slice(-6)).join(', ')}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label={t('attempts')}>
        <table class="list">
          <thead>
            <tr>
              <th scope="col" class="right">{t('attempt')}</th><th scope="col">{t('nodes')}</th><th scope="col">{t('end')}</th>
              <th scope="col" class="right">{t('ran')}</th><th scope="col">{t('started')}</th>
              <th scope="col" class="right">{t('memoryPeak')}</th><th scope="col">{t('why')}</th>
            </tr>
          </thead>
          <tbody>
            {[...attempts].reverse().map((attempt) => (
              <tr key={`${attempt.task ?? ''} ${attempt.attempt}`}>
                <td class="right num">{attempt.attempt}</td>
                <td>{attempt.nodes.slice(0, 8).map((node) => <span key={node}><NodeLink name={node} /> </span>)}{attempt.nodes.length > 8 && '…'}</td>
                <td><State state={stateOf(attempt)} bare /> {endOf(attempt)}</td>
                <td class="right num">{span(attempt.started_at, attempt.ended_at)}</td>
                <td class="num">{attempt.started_at ? exact(attempt.started_at) : '–'}</td>
                <td class="right num">{attempt.memory_peak ? size(attempt.memory_peak) : '–'}</td>
                <td class="dim">{attempt.detail}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
