'use strict'

// Fetches every URL at once over one SPDY session and prints the responses as JSON.
//
//   node client.js [--protocol spdy/3.1] [--repeat N] [--post FILE] [--seconds N] URL...
//
// http: uses SPDY by prior knowledge, https: SPDY by ALPN; the certificate is not verified.
// The exit code is 0 if every response is complete.

const crypto = require('node:crypto')
const fs = require('node:fs')
const net = require('node:net')
const tls = require('node:tls')
const transport = require('spdy-transport')
const readOptions = require('./options')

// Time for the streams of a failed session to report their own errors.
const END_AFTER_ERROR_MS = 500

const VERSIONS = { 'spdy/2': 2, 'spdy/3': 3, 'spdy/3.1': 3.1 }

const options = readOptions({ protocol: 'spdy/3.1', repeat: '1', post: '', seconds: '60' })
const urls = Array.from({ length: Number(options.repeat) }, () => options.positional).flat().map(text => new URL(text))
const body = options.post === '' ? null : fs.readFileSync(options.post)
const report = { peer: 'node-spdy', protocol: null, responses: [], pushed: [], errors: [] }
let socket

function finish () {
  const complete = report.responses.length === urls.length && report.responses.every(response => response.sha256 !== null)
  process.stdout.write(JSON.stringify(report) + '\n', () => {
    socket.destroy()
    process.exit(complete && report.errors.length === 0 ? 0 : 1)
  })
}

function finishIfDone () {
  const all = [...report.responses, ...report.pushed]
  if (all.every(one => one.sha256 !== null || one.error !== null)) finish()
}

function fail (message) {
  report.errors.push(message)
  finish()
}

function fetch (session, url, done) {
  const response = { url: url.href, status: 0, bytes: 0, sha256: null, error: null }
  report.responses.push(response)
  const stream = session.request({
    method: body === null ? 'GET' : 'POST',
    path: url.pathname + url.search,
    host: url.host,
    headers: { accept: '*/*', 'user-agent': 'spdy-interop-node' }
  })
  const hash = crypto.createHash('sha256')
  stream.on('response', status => { response.status = status })
  stream.on('data', chunk => {
    response.bytes += chunk.length
    hash.update(chunk)
  })
  stream.once('end', () => {
    response.sha256 = hash.digest('hex')
    done()
  })
  stream.on('error', error => {
    if (response.sha256 !== null || response.error !== null) return
    response.error = error.message
    done()
  })
  stream.on('pushPromise', promise => receivePush(promise))
  stream.end(body ?? undefined)
}

function receivePush (promise) {
  const pushed = { url: promise.path, status: 0, bytes: 0, sha256: null, error: null }
  report.pushed.push(pushed)
  const hash = crypto.createHash('sha256')
  promise.on('response', status => { pushed.status = status })
  promise.on('data', chunk => {
    pushed.bytes += chunk.length
    hash.update(chunk)
  })
  promise.once('end', () => {
    pushed.sha256 = hash.digest('hex')
    finishIfDone()
  })
  promise.on('error', error => {
    pushed.error = error.message
    finishIfDone()
  })
}

function run () {
  report.protocol = secure() ? socket.alpnProtocol : options.protocol
  if (!(report.protocol in VERSIONS)) return fail(`negotiated ${report.protocol}, expected SPDY`)
  socket.setNoDelay(true)
  const session = transport.connection.create(socket, { protocol: 'spdy', isServer: false })
  session.on('error', error => {
    report.errors.push(`session: ${error.message}`)
    // The streams may get no event at all.
    setTimeout(finish, END_AFTER_ERROR_MS).unref()
  })
  session.start(VERSIONS[report.protocol])
  urls.forEach(url => fetch(session, url, finishIfDone))
}

function secure () {
  return urls[0].protocol === 'https:'
}

if (urls.length === 0 || urls.some(url => url.origin !== urls[0].origin)) {
  console.error('expected URLs of one origin')
  process.exit(2)
}
const { hostname } = urls[0]
const port = Number(urls[0].port || (secure() ? 443 : 80))
socket = secure()
  ? tls.connect({ host: hostname, port, ALPNProtocols: [options.protocol], rejectUnauthorized: false }, run)
  : net.connect(port, hostname, run)
socket.on('error', error => fail(`socket: ${error.message}`))
setTimeout(() => fail(`not done after ${options.seconds} s`), Number(options.seconds) * 1000).unref()
