// How many nodes a pool had and was to have, over time. Loaded only where it is looked at.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { PoolHistory } from './api';

export function sizeChart(box: HTMLElement, lines: PoolHistory[], labels: [string, string]): () => void {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const times = lines.map((line) => Date.parse(line.time) / 1000);
  const target = lines.map((line) => line.target.dedicated + line.target.low_priority);
  const present = lines.map((line) => line.present.dedicated + line.present.low_priority);
  times.push(Date.now() / 1000); // as it still is
  target.push(target.at(-1) ?? 0);
  present.push(present.at(-1) ?? 0);
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  const axis: uPlot.Axis = { stroke: color('--text-dim'), grid: { stroke: color('--line'), width: 1 }, ticks: { stroke: color('--line'), width: 1 } };
  const series = (label: string, stroke: string, dash?: number[]): uPlot.Series =>
    ({ label, stroke, width: 2, ...(stepped && { paths: stepped }), ...(dash && { dash }) });
  const plot = new uPlot({
    width: box.clientWidth, height: 200, axes: [axis, { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000] }],
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    series: [{}, series(labels[0], color('--text-dim'), [6, 4]), series(labels[1], color('--accent'))],
  }, [times, target, present], box);
  const watch = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: 200 }));
  watch.observe(box);
  return () => { watch.disconnect(); plot.destroy(); };
}
