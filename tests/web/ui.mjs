// Drives the web UI in a real Chromium. usage: node ui.mjs MODULES SCENARIO PARAMETERS(JSON)
// Each step prints a line of JSON; a step that fails says why, and the others are still tried. What needs the
// service killed or started is asked of the caller: {"ask": WORD}, answered by a line on stdin.
import { createRequire } from 'node:module';
import http from 'node:http';
import path from 'node:path';
import readline from 'node:readline';
import fs from 'node:fs';

const [modules, scenario, given] = process.argv.slice(2);
const parameters = JSON.parse(given);
const load = createRequire(path.join(modules, 'index.js'));
const { chromium } = load('playwright-core');
const axeSource = fs.readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');

const stdin = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function caller(word) {
  console.log(JSON.stringify({ ask: word }));
  return (await stdin.next()).value;
}

let failed = 0;
async function step(title, work) {
  try {
    await work();
    console.log(JSON.stringify({ step: title, ok: true }));
  } catch (error) {
    ++failed;
    if (process.env.KEEP_PICTURES) for (const context of browser.contexts()) for (const page of context.pages()) await page.screenshot({ path: `${process.env.KEEP_PICTURES}/${title.replace(/\W+/g, '-')}.png` });
    console.log(JSON.stringify({ step: title, ok: false, why: String(error.stack ?? error).slice(0, 2000) }));
  }
  for (const context of browser.contexts()) await context.close();
}
function check(is, what) {
  if (!is) throw new Error(what);
}
const equal = (a, b, what = '') => check(a === b, `${what}: ${JSON.stringify(a)} is not ${JSON.stringify(b)}`);

const browser = await chromium.launch({
  executablePath: parameters.chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update'],
});
const root = () => parameters.url;

// What a page must never do, whatever it shows.
const violations = [];
async function open(to = '/', { token = parameters.token, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-US', ...options });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const own = root();
  page.on('pageerror', (error) => violations.push(`error in the page at ${page.url()}: ${error.stack}`));
  page.on('console', (message) => { if (/Content.Security.Policy|violates/i.test(message.text())) violations.push(message.text()); });
  page.on('request', (request) => { if (!request.url().startsWith(own) && !/^(data|blob):/.test(request.url())) violations.push(`asks elsewhere: ${request.url()}`); });
  if (token) await signIn(page, token, to);
  return page;
}
async function signIn(page, token, to) {
  await page.goto(`${root()}/login?to=${encodeURIComponent(to)}`);
  await page.locator('input[name=token]').fill(token);
  await page.locator('form.login button.main').click();
  await page.locator('.contact.live').waitFor();
}
const text = (page, selector = 'main') => page.locator(selector).innerText();
const seen = (page, what, selector = 'main') => page.locator(selector).getByText(what).first().waitFor();

// The addresses of all views, with what each asks for and a text of its own.
const views = {
  overview: { to: '/', asks: /v1\/(pools|nodes|queue|jobs)/, says: 'lab' },
  jobs: { to: '/jobs', asks: /v1\/jobs/, says: 'chain' },
  job: { to: '/jobs/job_1', asks: /v1\/jobs\/job_1$/, says: 'chain' },
  tasks: { to: '/jobs/job_1?tab=tasks', asks: /v1\/jobs\/job_1\/tasks/, says: 'fetch' },
  grid: { to: '/jobs/job_2?tab=tasks&as=grid', asks: /v1\/jobs\/job_2\/task-states/, says: 'succeeded' },
  task: { to: '/jobs/job_1/tasks/fetch', asks: /v1\/jobs\/job_1\/tasks\/fetch$/, says: 'fetch' },
  logs: { to: '/jobs/job_1/tasks/fetch/logs', asks: /v1\/jobs\/job_1\/tasks\/fetch$/, says: 'fetched 3' },
  pools: { to: '/pools', asks: /v1\/pools/, says: 'lab' },
  pool: { to: '/pools/lab', asks: /v1\/pools\/lab$/, says: 'lab-1' },
  history: { to: '/pools/lab?tab=history', asks: /v1\/pools\/lab\/history/, says: 'made by' },
  autoscale: { to: '/pools/lab?tab=autoscale', asks: /v1\/pools\/lab$/, says: '$TargetDedicatedNodes' },
  node: { to: '/nodes/lab-1', asks: /v1\/nodes\/lab-1$/, says: 'lab-1' },
};

const scenarios = {
  async signing_in() {
    await step('who is not signed in is asked to, and comes back to where they were going', async () => {
      const page = await open('/', { token: '' });
      await page.goto(`${root()}/jobs?state=running`);
      await page.locator('form.login').waitFor();
      await page.locator('input[name=token]').fill('wrong');
      await page.locator('form.login button.main').click();
      await page.locator('[role=alert]').getByText('valid token').waitFor();
      await page.locator('input[name=token]').fill(parameters.token);
      await page.locator('form.login button.main').click();
      await page.waitForURL(`${root()}/jobs?state=running`);
      await page.locator('.contact.live').waitFor();
      const cookies = await page.context().cookies();
      equal(cookies.length, 1, 'cookies');
      check(cookies[0].httpOnly && cookies[0].sameSite === 'Strict', JSON.stringify(cookies[0]));
      equal(await page.evaluate(() => document.cookie), '', 'what scripts see of the cookie');
      check(!(await page.evaluate(() => JSON.stringify(localStorage))).includes(parameters.token), 'the token is kept for scripts');
      await page.locator('.menu summary').click();
      await page.getByText('Sign out').click();
      await page.locator('form.login').waitFor();
      equal((await page.context().cookies()).length, 0, 'cookies after signing out');
    });
    await step('a link signs in once', async () => {
      const page = await open('/', { token: '' });
      await page.goto(parameters.link);
      await page.locator('.contact.live').waitFor();
      equal(page.url(), `${root()}/`);
      const other = await open('/', { token: '' });
      await other.goto(parameters.link);
      await other.locator('[role=alert]').getByText('used up').waitFor();
      check(!other.url().includes('#'), other.url());
    });
    await step('an address that leads nowhere says so', async () => {
      const page = await open('/jobs');
      await page.evaluate(() => history.pushState(null, '', '/jobs/job_1/nothing/here'));
      await page.evaluate(() => dispatchEvent(new PopStateEvent('popstate')));
      await seen(page, 'There is no such page');
      await page.goto(`${root()}/jobs/job_999`);
      await page.locator('[role=alert]').getByText('job_999').first().waitFor();
    });
  },

  async empty() {
    await step('an empty service shows three commands, until something happens', async () => {
      const page = await open('/');
      equal(await page.locator('.card code').count(), 3, 'commands');
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await page.locator('.card button').first().click();
      await page.locator('.card').getByText('Copied').waitFor();
      equal(await page.evaluate(() => navigator.clipboard.readText()), await page.locator('.card code').first().innerText());
      await page.goto(`${root()}/jobs`);
      await seen(page, 'There is no job yet.');
      await page.goto(`${root()}/pools`);
      await seen(page, 'There is no pool yet.');
      await page.goto(`${root()}/`);
      await page.locator('.card').first().waitFor();
      await caller('make a pool');
      await page.locator('.poolline').waitFor();
      equal(await page.locator('.card').count(), 0, 'commands');
    });
  },

  async faces() {
    for (const [name, view] of Object.entries(views)) {
      await step(`${name}: data`, async () => {
        const page = await open(view.to);
        if (name === 'autoscale') await page.locator('.chip').first().waitFor();
        else await seen(page, view.says);
        await page.context().close();
      });
      await step(`${name}: loading, then an error that can be tried again`, async () => {
        const page = await open('/new');
        let answer = () => {};
        const wait = new Promise((go) => { answer = go; });
        let isBroken = true;
        const path = (url) => view.asks.test(url.pathname);
        await page.route(path, async (route) => {
          await wait;
          if (isBroken) await route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"status":500,"code":"internal","detail":"the disk is on fire","hint":"put it out"}' });
          else await route.continue();
        });
        await page.goto(`${root()}${view.to}`);
        await page.locator('[aria-busy=true]').getByText('Loading').first().waitFor();
        answer();
        await page.locator('[role=alert]').getByText('the disk is on fire').first().waitFor();
        await page.getByText('put it out').first().waitFor();
        isBroken = false;
        // What events or the clock have tried again already is gone by now.
        await page.evaluate(() => { for (const button of document.querySelectorAll('.face button')) button.click(); });
        await page.locator('[role=alert]').first().waitFor({ state: 'detached' });
        await page.context().close();
      });
      await step(`${name}: denied`, async () => {
        const page = await open('/new');
        await page.route((url) => view.asks.test(url.pathname), (route) => route.fulfill({ status: 403, contentType: 'application/problem+json', body: '{"status":403,"code":"denied","detail":"eve may not read this"}' }));
        await page.goto(`${root()}${view.to}`);
        await seen(page, 'You may not see this');
        await page.context().close();
      });
    }
    await step('a viewer is told what they may not do, in the words of the service', async () => {
      const page = await open('/pools/lab', { token: parameters.viewer });
      await page.getByLabel('Drain lab-1').click();
      await seen(page, /may not update this node/);
      await page.goto(`${root()}/new`);
      await seen(page, /may not create this job/);
      equal(await page.getByText('Submit', { exact: false }).and(page.locator('button.main')).isDisabled(), true);
    });
  },

  async flow() {
    await step('submit, watch to the end', async () => {
      const page = await open('/new');
      await page.locator('textarea').fill('name: watched\npool: lab\ntasks:\n  - name: main\n    command: while [ ! -e $GO ]; do read -t 1 x < /dev/zero; done; echo "the end"\n    environment: {GO: ' + parameters.go + '}\n');
      await seen(page, 'The service would take this job.');
      await page.locator('button.main').click();
      await page.waitForURL(/\/jobs\/job_\d+$/);
      await page.locator('.title .state.run').waitFor();
      await page.locator('.tabs').getByText('Logs').click();
      await page.getByText('Log of main').click();
      await caller('let it end');
      await page.locator('.logline').getByText('the end').waitFor();
      await page.locator('.title .state.good').waitFor();
      await page.goBack();
      await page.locator('.title .state.good').waitFor();
    });
    await step('messages of the service come at the line concerned, as one types', async () => {
      const page = await open('/new');
      await page.locator('textarea').fill('name: x\ntasks:\n  - name: main\n    comand: echo\n');
      await page.locator('.verdict .said').getByText('comand').waitFor();
      equal(await page.locator('.gutter .wrong').innerText(), '4', 'the line');
      equal(await page.locator('button.main').isDisabled(), true);
      await page.reload();
      check((await page.locator('textarea').inputValue()).includes('comand'), 'what was typed is lost');
      await page.locator('textarea').fill('name: x\npool: lba\ntasks:\n  - name: main\n    command: echo\n');
      await page.locator('.verdict .said').getByText('there is no pool lba').waitFor();
    });
    await step('each template is a job that can be read', async () => {
      const page = await open('/new');
      for (const button of await page.locator('[role=group] button').all()) {
        await button.click();
        await page.locator('.verdict .good, .verdict .said').first().waitFor();
        const said = await text(page, '.verdict');
        check(/would take|needs \d+ nodes|no node|has \d+ nodes?/.test(said), `${await button.innerText()}: ${said}`);
      }
    });
    await step('cancel says what it stops; then clone', async () => {
      const job = await caller('submit one that sleeps');
      const page = await open(`/jobs/${job}`);
      await page.locator('.title .state.run').waitFor();
      await page.locator('.title .danger').click();
      await page.locator('dialog').getByText(`Cancel ${job} (sleeper)? 1 of its tasks`).waitFor();
      await page.locator('dialog').getByText('Leave it running').click();
      equal(await page.locator('dialog').count(), 0);
      await page.locator('.title .danger').click();
      await page.locator('dialog .danger').click();
      await page.locator('.title .state').getByText('cancelled').waitFor();
      await page.getByText('Clone').click();
      await page.waitForURL(/\/new/);
      await page.waitForFunction(() => document.querySelector('textarea').value.includes('sleeper'));
      await seen(page, 'The service would take this job.');
    });
    await step('drain, resume, resize', async () => {
      const page = await open('/pools/lab');
      await page.getByLabel('Drain lab-1').click();
      await page.getByLabel('Resume lab-1').click();
      await page.getByLabel('Drain lab-1').waitFor();
      await page.locator('input[name=dedicated]').fill('3');
      await page.getByText('Resize').click();
      await page.locator('.table').getByText('lab-3').waitFor();
      await page.getByLabel('Evict lab-3').click();
      await page.locator('dialog').getByText('Evict lab-3? Nothing runs on it.').waitFor();
      await page.locator('dialog .danger').click();
      await page.locator('.tabs').getByText('Events').click();
      await page.locator('tr', { hasText: 'lab-3' }).getByText(/evicted/).first().waitFor();
    });
    await step('a formula is evaluated as one types', async () => {
      const page = await open('/pools/lab?tab=autoscale');
      await page.locator('textarea').fill('$TargetDedicatedNodes = 1 + 4;');
      await page.locator('.chip').getByText('$TargetDedicatedNodes=5').waitFor();
      await page.locator('textarea').fill('$TargetDedicatedNodes = 1 +;');
      await page.locator('#formula-result .said').waitFor();
    });
    await step('why in plain words', async () => {
      const page = await open('/jobs/job_1');
      await page.locator('.why').waitFor();
      await seen(page, /Exit code 3/);
    });
  },

  async restart() {
    await step('the service is killed and comes back while the page is open', async () => {
      const page = await open('/jobs');
      await page.locator('.table').getByText('chain').waitFor();
      await caller('kill the service');
      await page.locator('.contact.lost').waitFor();
      await seen(page, 'does not answer since', '.notice');
      await page.locator('.stale').first().waitFor();
      await seen(page, 'chain'); // stale, never blank
      await caller('start it again');
      await page.locator('.contact.live').waitFor();
      await seen(page, 'was started again', '.notice');
      const job = await caller('submit one that sleeps');
      await page.locator('.table').getByText(job, { exact: true }).waitFor();
      await page.locator('.notice button').click();
      equal(await page.locator('.notice').count(), 0);
    });
  },

  async keyboard() {
    await step('the main flow without a mouse', async () => {
      const page = await open('/');
      const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
      await page.locator('main').focus();
      await press('?');
      await page.locator('dialog').getByText('Keys').waitFor();
      await press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
      await press('g', 'n');
      await page.waitForURL(/\/new$/);
      await press('/');
      await press('Control+a');
      await page.keyboard.type('name: typed\npool: lab\ntasks: [{name: main, command: echo typed}]\n');
      await seen(page, 'The service would take this job.');
      await press('Control+Enter');
      await page.waitForURL(/\/jobs\/job_\d+$/);
      await page.locator('.title .state.good').waitFor();
      await press('l');
      await page.waitForURL(/\/logs$/);
      await page.locator('.logline').getByText('typed').waitFor();
      await press('g', 'j');
      await page.waitForURL(/\/jobs$/);
      await press('/');
      await page.keyboard.type('typed');
      await page.waitForURL(/q=typed/);
      await press('Escape', 'j', 'Enter');
      await page.waitForURL(/\/jobs\/job_\d+$/);
      await press('e');
      await page.waitForURL(/\/new/);
      await page.waitForFunction(() => document.querySelector('textarea').value.includes('typed'));
      await press('g', 'p');
      await page.waitForURL(/\/pools$/);
      const before = await page.evaluate(() => document.documentElement.dataset.theme);
      await press('t');
      check(await page.evaluate(() => document.documentElement.dataset.theme) !== before, 'the theme stays');
    });
    await step('everything that can be clicked can be reached, and shows that it is', async () => {
      for (const view of Object.values(views)) {
        const page = await open(view.to);
        await seen(page, /./);
        const lost = await page.evaluate(() => [...document.querySelectorAll('main a, main button, main select, main input, main textarea')]
          .filter((element) => element.tabIndex < 0).map((element) => element.outerHTML.slice(0, 120)));
        equal(lost.length, 0, `${view.to}: ${lost}`);
        await page.keyboard.press('Tab');
        equal(await page.evaluate(() => document.activeElement.matches(':focus-visible')), true, view.to);
        await page.context().close();
      }
    });
  },

  async axe() {
    for (const scheme of ['light', 'dark'])
      for (const locale of ['en-US', 'zh-CN'])
        for (const [name, view] of [...Object.entries(views), ['new', { to: '/new', says: 'YAML' }]])
          await step(`${name}, ${scheme}, ${locale}`, async () => {
            const page = await open(view.to, { colorScheme: scheme, locale, reducedMotion: 'reduce' });
            await page.locator('main').getByRole(name === 'new' || name === 'autoscale' ? 'textbox' : 'link').first().waitFor();
            await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
            // Injected by the tools of the browser: the page's own policy lets nothing in.
            await page.evaluate(axeSource + '; undefined');
            const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
            equal(found.violations.length, 0, found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 150)} ${node.any[0]?.message ?? ''}`).join(' | ')}`).join('\n'));
            if (locale === 'zh-CN') check(/[\u4e00-\u9fff]/.test(await text(page, 'body')), 'no Chinese');
            await page.context().close();
          });
  },

  async large() {
    await step('a log of 1 GB scrolls, and little of it is fetched', async () => {
      const page = await open('/');
      let fetched = 0;
      let whole = 0;
      page.on('response', async (response) => {
        if (!/\/logs\?/.test(response.url()) || response.url().includes('follow=')) return;
        const length = Number(response.headers()['content-length'] ?? 0);
        fetched += length;
        if (response.status() === 200 && length > 1 << 20) ++whole;
      });
      await page.goto(`${root()}/jobs/${parameters.large}/tasks/write/logs`);
      await page.locator('.logline').getByText(parameters.last).waitFor();
      const log = page.locator('#log');
      await log.focus();
      await page.keyboard.press('Home');
      await page.locator('.logline').first().getByText('1', { exact: true }).waitFor();
      await page.keyboard.press('PageDown');
      await page.waitForFunction(() => Number(document.querySelector('.logline').textContent) > 5);
      const track = await page.locator('.track').boundingBox();
      await page.mouse.click(track.x + 8, track.y + track.height / 2);
      await page.waitForFunction(() => Number(document.querySelector('.logline:nth-child(2)').textContent) > 40_000_000);
      const middle = Number(await page.locator('.logline').nth(1).innerText());
      await page.mouse.move(400, 400);
      await page.mouse.wheel(0, 180);
      await page.waitForFunction((from) => Number(document.querySelector('.logline:nth-child(2)').textContent) === from + 10, middle);
      await page.mouse.wheel(0, -360);
      await page.waitForFunction((from) => Number(document.querySelector('.logline:nth-child(2)').textContent) === from - 10, middle);
      check(fetched < 8 << 20, `${fetched} bytes were fetched`);
      equal(whole, 0, 'answers with the whole');
      check(await page.locator('.logline').count() < 200, 'lines in the page');
    });
    await step('search finds, counts and goes on', async () => {
      const page = await open(`/jobs/${parameters.small}/tasks/write/logs?at=0`);
      await page.locator('input[type=search]').fill('NEEDLE');
      await page.getByText('1 of 3').waitFor();
      await page.locator('.hit mark').getByText('needle').waitFor();
      await page.locator('input[type=search]').press('Enter');
      await page.getByText('2 of 3').waitFor();
      await page.locator('input[type=search]').press('Shift+Enter');
      await page.locator('input[type=search]').press('Shift+Enter');
      await page.getByText('3 of 3').waitFor();
      check(page.url().includes('q=NEEDLE'), page.url());
      await page.locator('input[type=search]').fill('');
      await page.getByText('First error').click();
      await page.locator('.hit').getByText('ValueError').waitFor();
    });
    await step('10,000 jobs: few rows are drawn, wherever one scrolls', async () => {
      const page = await open('/new');
      const job = (n) => ({ id: `job_${n}`, name: `many-${n % 7}`, workspace: 'default', pool: 'lab', priority: 0, state: n % 5 ? 'succeeded' : 'failed', reason: '', held_by: null, submitted_by: 'ana', submitted_at: '2026-01-01T00:00:00Z', started_at: '2026-01-01T00:00:00Z', ended_at: '2026-01-01T00:00:09Z', source: null, tasks: { total: 1, waiting: 0, queued: 0, active: 0, succeeded: 1, failed: 0, cancelled: 0, skipped: 0 } });
      await page.route((url) => url.pathname === '/v1/jobs', async (route) => {
        const after = new URL(route.request().url()).searchParams.get('after');
        const from = after ? Number(after.slice(4)) - 1 : 10_000;
        const items = Array.from({ length: 1000 }, (_, n) => job(from - n));
        await route.fulfill({ json: { items, next: from > 1000 ? `job_${from - 999}` : null } });
      });
      await page.goto(`${root()}/jobs`);
      await page.getByText('10,000 of 10,000 jobs').waitFor();
      check(await page.locator('tbody tr').count() < 100, 'rows drawn');
      await page.locator('.table').evaluate((element) => { element.scrollTop = element.scrollHeight; });
      await page.locator('tbody').getByText('job_1', { exact: true }).waitFor();
      check(await page.locator('tbody tr').count() < 100, 'rows drawn');
      await page.locator('input[type=search]').fill('many-3');
      await page.selectOption('main select', 'failed');
      await page.getByText('286 of 10,000 jobs').waitFor();
      check(/q=many-3/.test(page.url()) && /state=failed/.test(page.url()), page.url());
      await page.locator('th').getByText('Job').click();
      await page.waitForURL(/sort=job/);
      await page.reload();
      await page.getByText('286 of 10,000 jobs').waitFor();
      equal(await page.locator('tbody tr:not([aria-hidden]) a').first().innerText(), 'job_10');
    });
    await step('100,000 tasks: each is a cell', async () => {
      const page = await open(`/jobs/${parameters.array}?tab=tasks`);
      await seen(page, '100,000');
      await page.locator('.grid').focus();
      await page.keyboard.press('End');
      await page.locator('#grid-at').getByText('cell[99999]').waitFor();
      const drawn = await page.locator('canvas').evaluate((canvas) => {
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let n = 0;
        for (let at = 3; at < data.length; at += 4) if (data[at] > 60) ++n;
        return n;
      });
      check(drawn > 300_000, `${drawn} pixels are drawn`);
      await page.keyboard.press('Enter');
      await page.waitForURL(/tasks\/cell%5B99999%5D$/);
      await seen(page, 'cell[99999]');
    });
  },

  async safety() {
    await step('markup in what jobs write stays text', async () => {
      const page = await open(`/jobs/${parameters.markup}/tasks/main/logs`);
      await page.locator('.logline').getByText('<img src=x onerror=').waitFor();
      equal(await page.locator('main img, main script').count(), 0, 'elements made of a log');
      await page.goto(`${root()}/jobs/${parameters.markup}`);
      await seen(page, '<b>tag</b>');
      equal(await page.locator('main b').count(), 0);
    });
    await step('it works behind a path prefix', async () => {
      const service = new URL(parameters.url);
      const proxy = http.createServer((request, response) => {
        if (!request.url.startsWith('/team/slipway/')) return response.writeHead(404).end();
        const onward = http.request({ host: service.hostname, port: service.port, method: request.method, path: request.url.slice('/team/slipway'.length), headers: request.headers }, (answer) => {
          response.writeHead(answer.statusCode, answer.headers);
          response.flushHeaders();
          answer.pipe(response);
        });
        onward.on('error', () => response.destroy());
        request.pipe(onward);
      });
      await new Promise((listening) => proxy.listen(0, '127.0.0.1', listening));
      const own = parameters.url;
      parameters.url = `http://127.0.0.1:${proxy.address().port}/team/slipway`;
      try {
        const page = await open('/jobs/job_1/tasks/fetch/logs');
        await page.locator('.logline').getByText('fetched 3').waitFor();
        equal(new URL(page.url()).pathname, '/team/slipway/jobs/job_1/tasks/fetch/logs');
        await page.reload();
        await page.locator('.logline').getByText('fetched 3').waitFor();
        await page.locator('h1 a').first().click();
        await page.waitForURL(/\/team\/slipway\/jobs\/job_1$/);
        await page.locator('.bar').getByText('New job').click();
        await page.waitForURL(/\/team\/slipway\/new$/);
        await seen(page, 'The service would take this job.'); // a POST: its origin is the proxy's
        await page.goto(`${root()}/pools/lab?tab=history`);
        await page.locator('.uplot').waitFor(); // loaded later, from there too
        await page.context().close();
      } finally {
        parameters.url = own;
        proxy.closeAllConnections();
        proxy.close();
      }
    });
    await step('a phone shows it without scrolling sideways', async () => {
      for (const view of [...Object.values(views), { to: '/new' }]) {
        const page = await open(view.to, { viewport: { width: 360, height: 740 } });
        await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        check(wide <= 0, `${view.to} is ${wide} px too wide`);
        await page.context().close();
      }
    });
  },
};

await scenarios[scenario]();
await step('no page broke a rule', async () => check(violations.length === 0, violations.join('\n')));
await browser.close();
process.stdin.destroy();
process.exitCode = failed ? 1 : 0;
