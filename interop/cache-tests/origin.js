// The origin that the suite's client expects behind the cache. The suite's own server listens on all addresses; this one
// uses its handlers and listens on loopback. The first line of stdout is JSON and contains the port.

import http from 'node:http'

import handleConfig from 'http-cache-tests/server/handle-config.mjs'
import handleState from 'http-cache-tests/server/handle-state.mjs'
import handleTest from 'http-cache-tests/server/handle-test.mjs'

const handlers = { config: handleConfig, state: handleState, test: handleTest }

const server = http.createServer((request, response) => {
  const [, name, ...rest] = new URL(request.url, 'http://localhost').pathname.split('/')
  const handle = handlers[name]
  if (handle === undefined) {
    response.writeHead(404).end()
    return
  }
  handle(rest, request, response)
})
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ peer: 'http-cache-tests', port: server.address().port }))
})
