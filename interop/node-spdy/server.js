'use strict'

// A folder served over SPDY by node-spdy, plain or (with --cert and --key) by TLS and ALPN.
//
//   node server.js --root DIR [--port 0] [--protocol spdy/3.1] [--cert FILE --key FILE]
//
// The first line of stdout is JSON and tells the port. POST is answered with what came; GET /a?push=b,c pushes
// /b and /c beside /a.

const fs = require('node:fs')
const path = require('node:path')
const spdy = require('spdy')
const readOptions = require('./options')

const options = readOptions({ root: '.', port: '0', protocol: 'spdy/3.1', cert: '', key: '' })
const root = path.resolve(options.root)
const tls = options.cert !== ''

// Each file is read once, so that what is measured is the server and not the disk.
const known = new Map()

function fileOf (url) {
  if (!known.has(url)) {
    const body = read(url)
    if (body === null) return null
    known.set(url, body)
  }
  return known.get(url)
}

function read (url) {
  const name = path.join(root, decodeURIComponent(new URL(url, 'http://any').pathname))
  const inside = name.startsWith(root + path.sep)
  return inside && fs.statSync(name, { throwIfNoEntry: false })?.isFile() ? fs.readFileSync(name) : null
}

function answer (response, status, body) {
  response.writeHead(status, { 'content-type': 'application/octet-stream', 'content-length': String(body.length) })
  response.end(body)
}

function push (response, name) {
  const body = fileOf('/' + name)
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
    const parts = []
    request.on('data', part => parts.push(part))
    request.on('end', () => answer(response, 200, Buffer.concat(parts)))
    return
  }
  const body = fileOf(request.url)
  const asked = request.url.includes('?') ? new URL(request.url, 'http://any').searchParams.get('push') : null
  if (asked !== null) asked.split(',').forEach(name => push(response, name))
  if (body === null) answer(response, 404, Buffer.from('no such file\n'))
  else answer(response, 200, body)
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
  // On plain TCP the library knows SPDY by its first byte but calls it just "spdy", and 3 and 3.1
  // look alike there; it takes the version from this name.
  const open = server._handleConnection
  server._handleConnection = function (socket, protocol) {
    return open.call(this, socket, protocol === 'spdy' ? options.protocol : protocol)
  }
}
// A client that leaves in the middle must not end the server for the others.
process.on('uncaughtException', error => console.error(`uncaught: ${error.stack}`))
server.on('error', error => {
  console.error(`server: ${error.message}`)
  process.exit(1)
})
server.listen(Number(options.port), '127.0.0.1', () => {
  console.log(JSON.stringify({ peer: 'node-spdy', port: server.address().port, protocol: options.protocol, tls }))
})
