import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Problem } from '../api';
import { t } from '../i18n';
import { Said } from '../parts';
import { signIn, signInProblem, signInWithPassword } from '../session';

export function Login() {
  const byPassword = useSignal(false);
  const busy = useSignal(false);
  useEffect(() => { document.title = `${t('signIn')} · Slipway`; });
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const field = (name: string) => String(form.get(name) ?? '').trim();
    busy.value = true;
    try {
      if (byPassword.value) await signInWithPassword(field('user'), String(form.get('password') ?? ''));
      else await signIn({ token: field('token') });
    } catch (error) {
      signInProblem.value = error as Problem;
    }
    busy.value = false;
  };
  const [before, after] = t('signInHint').split('{command}');
  return (
    <form class="login" onSubmit={(event) => void submit(event as SubmitEvent)}>
      <h1>{t('signIn')}</h1>
      {byPassword.value ? (
        <>
          <label>{t('user')}<input name="user" autocomplete="username" required /></label>
          <label>{t('password')}<input name="password" type="password" autocomplete="current-password" required /></label>
        </>
      ) : (
        <>
          <p>{before}<code>slipway ui</code>{after}</p>
          <label>{t('token')}<input name="token" type="password" autocomplete="off" required aria-describedby="tokenhint" /></label>
          <p class="dim" id="tokenhint">{t('tokenHint')}</p>
        </>
      )}
      <Said error={signInProblem.value} />
      <div class="row">
        <button class="main" disabled={busy.value}>{busy.value ? t('signingIn') : t('signIn')}</button>
        <button type="button" class="plain" onClick={() => { byPassword.value = !byPassword.value; signInProblem.value = undefined; }}>
          {byPassword.value ? t('withToken') : t('withPassword')}
        </button>
      </div>
    </form>
  );
}
