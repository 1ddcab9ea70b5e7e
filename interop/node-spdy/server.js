'use strict'

// Serves a folder over SPDY with node-spdy, over plain TCP or (with --cert and --key) TLS with ALPN.
//
//   node server.js --root DIR [--port 0] [--protocol spdy/3.1] [--cert FILE --key FILE]
//
// The first line of stdout is JSON and contains the port. POST returns the request body; GET /a?push=b,c pushes
// /b and /c with /a.

const fs = require('node:fs')
const path = require('node:path')
const spdy = require('spdy')
const readOptions = require('./options')

const options = readOptions({ root: '.', port: '0', protocol: 'spdy/3.1', cert: '', key: '' })
const root = path.resolve(options.root)
const tls = options.cert !== ''

// Files by URL. Each is read once, so that measurements do not include the disk.
const cache = new Map()

function cachedFile (url) {
  if (!cache.has(url)) {
    const body = read(url)
    if (body === null) return null
    cache.set(url, body)
  }
  return cache.get(url)
}

function read (url) {
  const name = path.join(root, decodeURIComponent(new URL(url, 'http://any').pathname))
  const inside = name.startsWith(root + path.sep)
  return inside && fs.statSync(name, { throwIfNoEntry: false })?.isFile() ? fs.readFileSync(name) : null
}

function respond (response, status, body) {
  response.writeHead(status, { 'content-type': 'application/octet-stream', 'content-length': String(body.length) })
  response.end(body)
}

function push (response, name) {
  const body = cachedFile('/' + name)
  const stream = response.push('/' + name, {
    status: 200,
    method: 'GET',
    response: { 'content-type': 'application/octet-stream', 'content-length': String(body.length) }
  })
  stream.on('error', error => console.error(`push of ${name}: ${error.message}`))
  stream.end(body)
}

function handle (request, response) {
  if (request.method === 'POST') {
    const chunks = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => respond(response, 200, Buffer.concat(chunks)))
    return
  }
  const body = cachedFile(request.url)
  const pushNames = request.url.includes('?') ? new URL(request.url, 'http://any').searchParams.get('push') : null
  if (pushNames !== null) pushNames.split(',').forEach(name => push(response, name))
  if (body === null) respond(response, 404, Buffer.from('no such file\n'))
  else respond(response, 200, body)
}

const settings = { spdy: { plain: !tls, protocols: [options.protocol] } }
if (tls) {
  settings.cert = fs.readFileSync(options.cert)
  settings.key = fs.readFileSync(options.key)
  settings.ALPNProtocols = [options.protocol]
} else {
  settings.spdy.protocol = options.protocol
}

const server = spdy.createServer(settings, handle)
if (!tls) {
  // On plain TCP the library detects SPDY by the first byte but names the protocol "spdy", because versions 3 and
  // 3.1 look the same there. It derives the version from this name.
  const handleConnection = server._handleConnection
  server._handleConnection = function (socket, protocol) {
    return handleConnection.call(this, socket, protocol === 'spdy' ? options.protocol : protocol)
  }
}
// A client that disconnects early must not stop the server.
process.on('uncaughtException', error => console.error(`uncaught: ${error.stack}`))
server.on('error', error => {
  console.error(`server: ${error.message}`)
  process.exit(1)
})
server.listen(Number(options.port), '127.0.0.1', () => {
  console.log(JSON.stringify({ peer: 'node-spdy', port: server.address().port, protocol: options.protocol, tls }))
})
