#!/usr/bin/env bash
# A fake browser: answers each command over its pipes (3 and 4), and loads no page. Its own arguments:
#
#   log=FILE     initial content of its NetLog
#   flood=LINES  on Page.navigate, add this many events to the NetLog and report no load event
#   loss=true    report that the trace has lost data
#   once=FOLDER  create this folder at start; fail if it exists
#   close=PORT   on Browser.close, connect to this port and do not end
set -u
for argument; do
  case $argument in
  --log-net-log=*) netlog=${argument#*=} ;;
  log=*) cat "${argument#*=}" >"$netlog" ;;
  loss=*) loss=${argument#*=} ;;
  once=*)
    mkdir "${argument#*=}" 2>/dev/null || {
      echo "the browser already ran" >&2
      exit 1
    }
    ;;
  flood=*) flood=${argument#*=} ;;
  close=*) close=${argument#*=} ;;
  esac
done

reply() {
  printf '%s\0' "$1" >&4
}

while IFS= read -r -d '' command <&3; do
  [[ $command =~ \"id\":([0-9]+) ]]
  reply "{\"id\":${BASH_REMATCH[1]},\"result\":{\"product\":\"fake browser\",\"sessionId\":\"page\"}}"
  case $command in
  *Page.navigate*)
    if [[ -v flood ]]; then
      event='{"params":{},"phase":0,"source":{"id":1,"type":0},"time":"0","type":0},'
      yes "$event" | head -n "$flood" >>"$netlog" &
    else
      reply '{"method":"Page.loadEventFired","sessionId":"page","params":{"timestamp":1}}'
    fi
    ;;
  *Tracing.end*) reply "{\"method\":\"Tracing.tracingComplete\",\"params\":{\"dataLossOccurred\":${loss:-false}}}" ;;
  *Browser.close*)
    [[ -v close ]] || exit 0
    exec 5<>"/dev/tcp/127.0.0.1/$close"
    ;;
  esac
done
