// A job's spec as a job file in YAML, for the editor.

const plain = /^[A-Za-z_./][A-Za-z0-9_./@%+-]*( [A-Za-z0-9_./@%+-]+)*$/;
const words = new Set(['true', 'false', 'null', 'yes', 'no', 'on', 'off', 'y', 'n', '~', '.nan', '.inf']);

function scalar(value: unknown, indent: string): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  if (value.includes('\n') && !value.startsWith(' ') && !/[^\S\n]\n|\t|[\x00-\x08\x0b-\x1f]/.test(value)) {
    const keep = value.endsWith('\n') ? (value.endsWith('\n\n') ? '+' : '') : '-';
    return `|${keep}\n${value.replace(/\n+$/, (end) => (keep === '+' ? end.slice(1) : '')).split('\n').map((line) => line && `${indent}${line}`).join('\n')}`;
  }
  return plain.test(value) && !words.has(value.toLowerCase()) ? value : JSON.stringify(value);
}

export function toYaml(value: unknown, indent = ''): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return `${indent}[]\n`;
    return value.map((item) => {
      if (item === null || typeof item !== 'object') return `${indent}- ${scalar(item, `${indent}  `)}\n`;
      const inner = toYaml(item, `${indent}  `);
      return `${indent}- ${inner.slice(indent.length + 2)}`;
    }).join('');
  }
  if (value !== null && typeof value === 'object') {
    const fields = Object.entries(value).filter(([, field]) => field !== null && field !== undefined);
    if (fields.length === 0) return `${indent}{}\n`;
    return fields.map(([name, field]) => {
      const key = plain.test(name) && !name.includes(' ') ? name : JSON.stringify(name);
      if (typeof field !== 'object') return `${indent}${key}: ${scalar(field, `${indent}  `)}\n`;
      if (Object.keys(field as object).length === 0) return `${indent}${key}: ${Array.isArray(field) ? '[]' : '{}'}\n`;
      if (Array.isArray(field) && field.every((item) => typeof item !== 'object') && field.join(', ').length < 80)
        return `${indent}${key}: [${field.map((item) => typeof item === 'string' && /[,\[\]{}]/.test(item) ? JSON.stringify(item) : scalar(item, '').startsWith('|') ? JSON.stringify(item) : scalar(item, '')).join(', ')}]\n`;
      return `${indent}${key}:\n${toYaml(field, `${indent}  `)}`;
    }).join('');
  }
  return `${indent}${scalar(value, indent)}\n`;
}
