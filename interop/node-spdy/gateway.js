'use strict'

// Forwards every request to an HTTP/1.1 server with node-spdy, over TLS with ALPN.
//
//   node gateway.js --port 443,8443 --protocol spdy/3.1 --upstream 127.0.0.1:10000 --cert FILE --key FILE
//
// It listens on the ports of every address. `spdy lab` loads pages from it (crates/spdy-lab/src/live/gateway).

const fs = require('node:fs')
const http = require('node:http')
const spdy = require('spdy')
const readOptions = require('./options')

const options = readOptions({ port: '443', protocol: 'spdy/3.1', upstream: '', cert: '', key: '' })
const [host, port] = options.upstream.split(':')
const agent = new http.Agent({ keepAlive: true })

// Headers of one connection, which a gateway does not forward.
const CONNECTION_HEADERS = ['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade']

// The headers to forward. A header that occurs several times has a list of values, in the order of the message.
function forwardedHeaders (message) {
  const headers = {}
  for (let at = 0; at < message.rawHeaders.length; at += 2) {
    const name = message.rawHeaders[at].toLowerCase()
    const value = message.rawHeaders[at + 1]
    if (CONNECTION_HEADERS.includes(name)) continue
    headers[name] = name in headers ? [headers[name], value].flat() : value
  }
  return headers
}

function forward (request, response) {
  const target = { agent, host, port, method: request.method, path: request.url, headers: forwardedHeaders(request) }
  const upstream = http.request(target, answer => {
    response.writeHead(answer.statusCode, forwardedHeaders(answer))
    answer.pipe(response)
  })
  upstream.on('error', error => {
    console.error(`upstream: ${request.url}: ${error.message}`)
    if (!response.headersSent) response.writeHead(502)
    response.end()
  })
  request.pipe(upstream)
}

// A client that disconnects early must not stop the gateway.
process.on('uncaughtException', error => console.error(`uncaught: ${error.stack}`))
for (const port of options.port.split(',')) {
  const server = spdy.createServer({
    cert: fs.readFileSync(options.cert),
    key: fs.readFileSync(options.key),
    ALPNProtocols: [options.protocol],
    spdy: { protocols: [options.protocol] }
  }, forward)
  server.on('error', error => {
    console.error(`server: ${error.message}`)
    process.exit(1)
  })
  server.listen(Number(port), '0.0.0.0')
}
