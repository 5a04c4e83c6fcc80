import { useEffect } from 'preact/hooks';
import { get, part, taskPath, type TaskWithHistory } from '../api';
import { t } from '../i18n';
import { useKeys } from '../keys';
import { useResource } from '../live';
import { Face, JobLink, State } from '../parts';
import { go, href } from '../router';
import { toYaml } from '../yaml';
import { Attempts } from './attempts';

export function Task({ job, name }: { job: string; name: string }) {
  const task = useResource(`task ${job} ${name}`, (signal) => get<TaskWithHistory>(taskPath(job, name), signal),
    (event) => event.job === job && (event.task === name || event.task === null));
  const logs = `/jobs/${part(job)}/tasks/${part(name)}/logs`;
  useEffect(() => { document.title = `${name} · ${job} · Slipway`; }, []);
  useKeys({ l: () => go(logs) });
  return (
    <Face data={task.data} error={task.error} retry={task.refresh}>
      {() => task.data && (
        <>
          <div class="title">
            <h1><span class="num"><JobLink id={job} /></span> / {task.data.name}</h1>
            <State state={task.data.state} />
            <span class="space" />
            <a class="button" href={href(logs)}>{t('openLogs')}</a>
          </div>
          {task.data.reason && <p class="line dim">{task.data.reason}</p>}
          <section><h2>{t('story')}</h2><Attempts attempts={task.data.history} /></section>
          {task.data.last_lines && <section><h2>{t('lastLines')}</h2><pre tabIndex={0}>{task.data.last_lines}</pre></section>}
          {task.data.processes > 1 && (
            <section>
              <h2>{t('processes')}</h2>
              <ul class="row wrap plainlist">
                {task.data.process_names.slice(0, 200).map((process) => (
                  <li key={process}><a class="num" href={href(`${logs}?process=${part(process)}`)}>{process}</a></li>
                ))}
              </ul>
            </section>
          )}
          <section><h2>{t('file')}</h2><pre class="file" tabIndex={0}>{toYaml(task.data.spec)}</pre></section>
        </>
      )}
    </Face>
  );
}
