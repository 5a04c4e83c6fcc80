// A provider of OpenID Connect for tests: npm's oidc-provider, with users who need no password. `ana` is in the group
// research; who begins with `es` gets id tokens signed by ES256 (client slipway-es).
// usage: node oidc_provider.mjs PORT     prints "ready" once it answers
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const port = Number(process.argv[2]);
const key = (kind, options, id, alg) => ({ ...generateKeyPairSync(kind, options).privateKey.export({ format: 'jwk' }), kid: id, use: 'sig', alg });
const groups = { ana: ['research'] };
const device = 'urn:ietf:params:oauth:grant-type:device_code';
const client = (id, more) => ({
  client_id: id,
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/callback'],
  grant_types: ['authorization_code', device],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  ...more,
});

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    client('slipway', {}),
    client('slipway-es', { id_token_signed_response_alg: 'ES256' }),
    client('slipway-secret', { client_secret: 'kept+by/the service', token_endpoint_auth_method: 'client_secret_basic' }),
  ],
  jwks: { keys: [key('rsa', { modulusLength: 2048 }, 'rsa-1', 'RS256'), key('ec', { namedCurve: 'P-256' }, 'ec-1', 'ES256')] },
  scopes: ['openid', 'profile', 'email', 'groups'],
  claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email'], groups: ['groups'] },
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true } },
  pkce: { required: () => true },
  cookies: { keys: ['for a test'] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: `sub-of-${id}`, preferred_username: id, groups: groups[id] ?? [] }) }),
});
provider.listen(port, '127.0.0.1', () => console.log('ready'));
