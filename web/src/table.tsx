// A table of which only the lines in sight are drawn: 32 px each, however many there are.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useKeys } from './keys';
import { opensLink } from './parts';

export interface Column<T> {
  id: string;
  title: string;
  cell: (item: T) => ComponentChildren;
  number?: boolean;
  narrow?: boolean; // stays on a phone
  sort?: boolean;
}

const rowHeight = 32;

export function Table<T>({ items, columns, keyOf, label, sort, onSort }: {
  items: T[]; columns: Column<T>[]; keyOf: (item: T) => string; label: string; sort?: string;
  onSort?: (column: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(800);
  const chosen = useSignal(-1);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => { height.value = element.clientHeight; };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const show = (index: number) => {
    chosen.value = Math.max(0, Math.min(items.length - 1, index));
    const element = box.current;
    if (!element) return;
    const y = chosen.value * rowHeight;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + 2 * rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = y + 2 * rowHeight - element.clientHeight;
  };
  useKeys({
    j: () => show(chosen.value + 1),
    k: () => show(chosen.value - 1),
    ArrowDown: () => show(chosen.value + 1),
    ArrowUp: () => show(chosen.value - 1),
    Enter: (event) => {
      if ((event.target as Element).closest('a, button')) (event.target as HTMLElement).click();
      else box.current?.querySelector<HTMLAnchorElement>('tr.chosen a')?.click();
    },
  });
  // A shorter list: the line that was chosen may be gone.
  useEffect(() => { if (chosen.value >= items.length) chosen.value = items.length - 1; }, [items.length]);

  const over = 8;
  const first = Math.max(0, Math.floor(top.value / rowHeight) - over);
  const last = Math.min(items.length, Math.ceil((top.value + height.value) / rowHeight) + over);
  const direction = sort?.startsWith('-') ? 'descending' : 'ascending';
  const by = sort?.replace(/^-/, '');
  return (
    <div class="table" ref={box} tabIndex={0} role="region" aria-label={label}
      onScroll={(event) => { top.value = event.currentTarget.scrollTop; }}>
      <table aria-rowcount={items.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <th key={column.id} scope="col" class={`${column.number ? 'right' : ''} ${column.narrow ? '' : 'wide'}`}
                aria-sort={by === column.id ? direction : undefined}>
                {column.sort && onSort
                  ? <button class="plain" onClick={() => onSort(by === column.id && direction === 'ascending' ? `-${column.id}` : column.id)}>
                      {column.title}<span aria-hidden="true">{by === column.id ? (direction === 'ascending' ? ' ↑' : ' ↓') : ''}</span>
                    </button>
                  : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true" style={{ height: `${first * rowHeight}px` }}><td colSpan={columns.length} /></tr>}
          {items.slice(first, last).map((item, at) => (
            <tr key={keyOf(item)} aria-rowindex={first + at + 2} onClick={opensLink}
              class={first + at === chosen.value ? 'chosen' : undefined}>
              {columns.map((column) => (
                <td key={column.id} class={`${column.number ? 'right num' : ''} ${column.narrow ? '' : 'wide'}`}>
                  {column.cell(item)}
                </td>
              ))}
            </tr>
          ))}
          {last < items.length && (
            <tr aria-hidden="true" style={{ height: `${(items.length - last) * rowHeight}px` }}><td colSpan={columns.length} /></tr>
          )}
        </tbody>
      </table>
    </div>
  );
}
