// Every text of the page in English and Chinese. A text that one of the two lacks does not compile.
import { computed, signal } from '@preact/signals';

const en = {
  overview: 'Overview', jobs: 'Jobs', pools: 'Pools', newJob: 'New job', signIn: 'Sign in', signOut: 'Sign out',
  light: 'Light', dark: 'Dark', system: 'System', theme: 'Theme', language: 'Language', menu: 'Settings',
  live: 'live', connecting: 'connecting', lost: 'no contact',
  lostBar: 'The service does not answer since {since}. What is shown is from then; trying again.',
  restarted: 'The service was started again at {time}. Everything here is up to date.',
  degraded: 'The service takes no new work: {why}',
  dismiss: 'Dismiss', copy: 'Copy', copied: 'Copied', close: 'Close', cancel: 'Cancel', save: 'Save', retry: 'Try again',
  loading: 'Loading…', nothing: 'Nothing here.', skip: 'Skip to content', keys: 'Keys',
  error: 'This could not be loaded', denied: 'You may not see this', missing: 'There is no such page',
  missingHint: 'The address leads to no view of this service.', toOverview: 'Go to the overview',
  // states
  queued: 'queued', running: 'running', stopping: 'stopping', succeeded: 'succeeded', failed: 'failed',
  cancelled: 'cancelled', waiting: 'waiting', starting: 'starting', skipped: 'skipped', joining: 'joining',
  idle: 'idle', busy: 'busy', draining: 'draining', evicted: 'evicted', gone: 'gone', start_failed: 'start failed',
  held: 'held', steady: 'steady', resizing: 'resizing', deleting: 'deleting',
  // overview
  empty: 'Nothing has happened here yet. Three commands to begin with:',
  emptyPool: 'Make a pool', emptyPoolText: 'Two nodes on this machine.',
  emptyRun: 'Run a command', emptyRunText: 'On a node of the pool, its output in your terminal.',
  emptyTrain: 'Train a model', emptyTrainText: 'Digits, on two workers and a parameter server.',
  runningJobs: 'Running', queue: 'Queue', noQueue: 'Nothing waits.', noRunning: 'Nothing runs.',
  failedToday: 'Failed today', noFailed: 'Nothing failed today.', whatHappens: 'What happens',
  noEvents: 'Nothing has happened yet.', goodput: 'Goodput', goodputHint: 'Time of its nodes that was of use',
  place: 'Place', why: 'Why', since: 'Since', nodeStrip: 'Nodes of pool {pool}',
  // jobs
  job: 'Job', name: 'Name', state: 'State', pool: 'Pool', user: 'User', submitted: 'Submitted', ran: 'Ran',
  done: 'Tasks done', priority: 'Priority', filter: 'Filter', filterJobs: 'Filter jobs: name, id, user, pool',
  all: 'all', noJobs: 'There is no job yet.', noMatch: 'No job matches the filter.', jobCount: '{shown} of {all} jobs',
  submitFirst: 'Submit the first',
  // a job
  summary: 'Summary', tasks: 'Tasks', logs: 'Logs', events: 'Events', file: 'Job file', files: 'Files',
  cancelJob: 'Cancel', resubmit: 'Submit again', clone: 'Clone', hold: 'Hold', release: 'Release',
  confirmCancel: 'Cancel {job} ({name})? {n} of its tasks are running and will be stopped.',
  confirmCancelNone: 'Cancel {job} ({name})? None of its tasks is running.',
  stopIt: 'Stop it', keepIt: 'Leave it running', exitCode: 'Exit code', signal: 'Signal', attempts: 'Attempts',
  attempt: 'Attempt', nodes: 'Nodes', node: 'Node', started: 'Started', ended: 'Ended', end: 'End',
  noAttempts: 'It has not been started yet.', lastLines: 'Last lines of stderr', story: 'What happened',
  storyEnded: '{end} after {time}', storyPlaced: 'placed on {nodes}',
  storyBack: 'back on {nodes} in {time}', storyFirst: 'started on {nodes}', reason: 'Reason', memoryPeak: 'Memory peak',
  cpuTime: 'CPU time', processes: 'Processes', grid: 'Grid of {n} tasks',
  gridHelp: 'Arrow keys move, Enter opens the task.', gridCut: 'Only the first {n} tasks are drawn.', list: 'List',
  task: 'Task', dependsOn: 'after', tag: 'Tags', taskCount: '{done} of {total} done', copyOf: 'Copy of {job}',
  by: 'by {user}', openLogs: 'Open the logs', noTasks: 'No task is in this state.',
  // logs
  follow: 'Follow', wrap: 'Wrap lines', search: 'Search', matches: '{at} of {n}', noMatches: 'no match',
  searching: '{percent} % searched', nextMatch: 'Next match', previousMatch: 'Previous match',
  firstError: 'First error', noError: 'No line looks like an error.', download: 'Download', process: 'Process',
  allProcesses: 'all', stream: 'Stream', emptyLog: 'It has written nothing.',
  waitingLog: 'It has written nothing yet.', logPosition: 'Position in the log', logOf: 'Log of {task}',
  cutLine: 'line cut', lastOfEach: 'The last {size} of each process, in the order of arrival.',
  // pools
  noPools: 'There is no pool yet.', noNodes: 'It has no nodes.', target: 'Target', cores: 'Cores', memory: 'Memory',
  gpus: 'GPUs', resize: 'Resize', nodesWanted: 'Nodes', lowPriorityWanted: 'Low-priority nodes', drain: 'Drain',
  resume: 'Resume', evict: 'Evict', runningHere: 'Running', history: 'Sizes', autoscale: 'Autoscale',
  formula: 'Formula', evaluate: 'What it gives now', useFormula: 'Use this formula', byHand: 'Sized by hand',
  sizedBy: 'Sized by', address: 'Address', start: 'Start task', steps: 'What happened to it',
  confirmEvict: 'Evict {node}? These are stopped and wait for another node: {running}.',
  confirmEvictIdle: 'Evict {node}? Nothing runs on it.', variables: 'Variables', default: 'default',
  lowPriority: 'low priority', result: 'Result', formulaError: 'Line {line}, column {column}: {message}',
  noHistory: 'Its size has not changed yet.', of: '{used} of {all}', time: 'Time', resizeErrors: 'Errors of the resize',
  // submit
  template: 'Template', single: 'One process', array: 'Array', gang: 'Parameter servers', torchrun: 'torchrun',
  horovod: 'Horovod', sweep: 'Sweep', submit: 'Submit', valid: 'The service would take this job.', startNow: '{placed} of {all} would start now.',
  checking: 'Checking…', draft: 'Kept as you type, in this browser.', discard: 'Start over',
  editorLabel: 'Job file in YAML', notes: 'It says',
  // sign in
  token: 'Token', signInHint: 'Paste a token, or run {command} on the machine of the service: it opens this page signed in.',
  password: 'Password', withPassword: 'With a password', withToken: 'With a token', signingIn: 'Signing in…',
  tokenHint: "The service's own token lies in the file 'token' of its data folder.",
  // keys
  keyHelp: 'This list', keyFilter: 'Filter or search', keyGo: 'Go to overview, jobs, pools, new job',
  keyMove: 'Next or previous line', keyOpen: 'Open the chosen line', keyLogs: 'Logs of the job or task',
  keyCancel: 'Cancel the job', keyClone: 'Clone the job', keyTheme: 'Light or dark', keyBack: 'Back, close',
  // time
  ago: '{time} ago', now: 'just now', seconds: '{n} s', minutes: '{n} m', hours: '{n} h', days: '{n} d', actions: 'Actions',
};

export type Text = keyof typeof en;

const zh: Record<Text, string> = {
  overview: '概览', jobs: '作业', pools: '资源池', newJob: '新建作业', signIn: '登录', signOut: '退出登录',
  light: '浅色', dark: '深色', system: '跟随系统', theme: '主题', language: '语言', menu: '设置',
  live: '实时', connecting: '正在连接', lost: '连接中断',
  lostBar: '服务自 {since} 起没有响应。显示的是当时的内容，正在重试。',
  restarted: '服务已于 {time} 重新启动，这里的内容都是最新的。',
  degraded: '服务暂不接受新工作：{why}',
  dismiss: '知道了', copy: '复制', copied: '已复制', close: '关闭', cancel: '取消', save: '保存', retry: '重试',
  loading: '正在加载…', nothing: '这里没有内容。', skip: '跳到正文', keys: '快捷键',
  error: '无法加载', denied: '你没有查看权限', missing: '没有这个页面',
  missingHint: '这个地址不对应本服务的任何视图。', toOverview: '回到概览',
  queued: '排队', running: '运行中', stopping: '正在停止', succeeded: '成功', failed: '失败',
  cancelled: '已取消', waiting: '等待', starting: '正在启动', skipped: '已跳过', joining: '正在加入',
  idle: '空闲', busy: '忙碌', draining: '正在排空', evicted: '被回收', gone: '已离开', start_failed: '启动失败',
  held: '已暂停', steady: '稳定', resizing: '正在调整', deleting: '正在删除',
  empty: '这里还没有发生任何事。可以从三条命令开始：',
  emptyPool: '建立资源池', emptyPoolText: '本机上的两个节点。',
  emptyRun: '运行命令', emptyRunText: '在池中的节点上运行，输出显示在你的终端。',
  emptyTrain: '训练模型', emptyTrainText: '手写数字，两个工作进程和一个参数服务器。',
  runningJobs: '正在运行', queue: '队列', noQueue: '没有等待的任务。', noRunning: '没有正在运行的作业。',
  failedToday: '今天失败的', noFailed: '今天没有失败。', whatHappens: '最新动态',
  noEvents: '还没有发生任何事。', goodput: '有效利用率', goodputHint: '节点时间中真正有用的部分',
  place: '位置', why: '原因', since: '自', nodeStrip: '资源池 {pool} 的节点',
  job: '作业', name: '名称', state: '状态', pool: '资源池', user: '用户', submitted: '提交时间', ran: '运行时长',
  done: '完成的任务', priority: '优先级', filter: '筛选', filterJobs: '筛选作业：名称、编号、用户、资源池',
  all: '全部', noJobs: '还没有作业。', noMatch: '没有符合条件的作业。', jobCount: '{all} 个作业中的 {shown} 个',
  submitFirst: '提交第一个',
  summary: '摘要', tasks: '任务', logs: '日志', events: '事件', file: '作业文件', files: '文件',
  cancelJob: '取消作业', resubmit: '再次提交', clone: '克隆', hold: '暂停', release: '放行',
  confirmCancel: '要取消 {job}（{name}）吗？其中 {n} 个任务正在运行，将被停止。',
  confirmCancelNone: '要取消 {job}（{name}）吗？没有任务正在运行。',
  stopIt: '停止', keepIt: '继续运行', exitCode: '退出码', signal: '信号', attempts: '各次尝试',
  attempt: '尝试', nodes: '节点', node: '节点', started: '开始', ended: '结束', end: '结果',
  noAttempts: '还没有启动过。', lastLines: 'stderr 的最后几行', story: '经过',
  storyEnded: '{time} 后{end}', storyPlaced: '已安排到 {nodes}',
  storyBack: '{time} 后在 {nodes} 上恢复', storyFirst: '在 {nodes} 上启动', reason: '原因', memoryPeak: '内存峰值',
  cpuTime: 'CPU 时间', processes: '进程', grid: '{n} 个任务的网格',
  gridHelp: '方向键移动，回车打开任务。', gridCut: '只画出前 {n} 个任务。', list: '列表',
  task: '任务', dependsOn: '依赖', tag: '标签', taskCount: '{total} 个中完成 {done} 个', copyOf: '{job} 的副本',
  by: '提交者 {user}', openLogs: '打开日志', noTasks: '没有处于此状态的任务。',
  follow: '跟随', wrap: '自动换行', search: '搜索', matches: '第 {at} 处，共 {n} 处', noMatches: '没有匹配',
  searching: '已搜索 {percent} %', nextMatch: '下一处', previousMatch: '上一处',
  firstError: '第一个错误', noError: '没有像错误的行。', download: '下载', process: '进程',
  allProcesses: '全部', stream: '输出流', emptyLog: '没有输出。',
  waitingLog: '还没有输出。', logPosition: '日志中的位置', logOf: '{task} 的日志',
  cutLine: '行被截断', lastOfEach: '每个进程最后的 {size}，按到达顺序。',
  noPools: '还没有资源池。', noNodes: '没有节点。', target: '目标', cores: '核', memory: '内存',
  gpus: 'GPU', resize: '调整大小', nodesWanted: '节点数', lowPriorityWanted: '低优先级节点数', drain: '排空',
  resume: '恢复', evict: '回收', runningHere: '正在运行', history: '大小变化', autoscale: '自动伸缩',
  formula: '公式', evaluate: '现在的结果', useFormula: '使用此公式', byHand: '手动调整',
  sizedBy: '大小取决于', address: '地址', start: '启动任务', steps: '状态变化',
  confirmEvict: '要回收 {node} 吗？这些任务会停止并等待其他节点：{running}。',
  confirmEvictIdle: '要回收 {node} 吗？上面没有任务。', variables: '变量', default: '默认',
  lowPriority: '低优先级', result: '结果', formulaError: '第 {line} 行第 {column} 列：{message}',
  noHistory: '大小还没有变过。', of: '{all} 中用了 {used}', time: '时间', resizeErrors: '调整大小时的错误',
  template: '模板', single: '单个进程', array: '数组', gang: '参数服务器', torchrun: 'torchrun',
  horovod: 'Horovod', sweep: '参数搜索', submit: '提交', valid: '服务会接受这个作业。', startNow: '{all} 个中 {placed} 个会立即开始。',
  checking: '正在检查…', draft: '边写边保存在此浏览器中。', discard: '重新开始',
  editorLabel: 'YAML 作业文件', notes: '服务的说明',
  token: '令牌', signInHint: '粘贴令牌，或在服务所在的机器上运行 {command}：它会打开已登录的页面。',
  password: '密码', withPassword: '使用密码', withToken: '使用令牌', signingIn: '正在登录…',
  tokenHint: '服务自己的令牌在其数据目录的 token 文件中。',
  keyHelp: '显示此列表', keyFilter: '筛选或搜索', keyGo: '前往概览、作业、资源池、新建作业',
  keyMove: '下一行或上一行', keyOpen: '打开选中的行', keyLogs: '作业或任务的日志',
  keyCancel: '取消作业', keyClone: '克隆作业', keyTheme: '浅色或深色', keyBack: '返回、关闭',
  ago: '{time}前', now: '刚刚', seconds: '{n} 秒', minutes: '{n} 分钟', hours: '{n} 小时', days: '{n} 天', actions: '操作',
};

export type Language = 'en' | 'zh-CN';
const stored = localStorage.getItem('slipway.language');
export const language = signal<Language>(
  stored === 'en' || stored === 'zh-CN' ? stored : navigator.language.startsWith('zh') ? 'zh-CN' : 'en');
const texts = computed(() => (language.value === 'zh-CN' ? zh : en));

export function setLanguage(next: Language) {
  localStorage.setItem('slipway.language', next);
  language.value = next;
}

// t('jobCount', {shown: 3, all: 10})
export function t(text: Text, values?: Record<string, string | number>): string {
  const found = texts.value[text];
  return values ? found.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole)) : found;
}

export const isText = (text: string): text is Text => Object.hasOwn(en, text);
// States and other words of the API; one that is not known is shown as it is.
export const word = (text: string): string => (isText(text) ? t(text) : text.replaceAll('_', ' '));
