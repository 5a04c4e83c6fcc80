import { render } from 'preact';
import { App } from './shell';
import { begin } from './session';
import './style.css';

render(<App />, document.getElementById('app') as HTMLElement);
void begin();
