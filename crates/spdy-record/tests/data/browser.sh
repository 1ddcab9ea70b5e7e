#!/usr/bin/env bash
# Stands in for a browser: answers each command over its pipes (3 and 4), and loads no page. Arguments of its own:
#
#   log=FILE     what its NetLog begins with
#   flood=LINES  so many events it adds to that once it shall navigate, and then tells of no load
#   once=FOLDER  where that is, it fails; it makes it when it starts
#   close=PORT   it connects there when it shall end, and does not end
set -u
for argument; do
  case $argument in
  --log-net-log=*) netlog=${argument#*=} ;;
  log=*) cat "${argument#*=}" >"$netlog" ;;
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

tell() {
  printf '%s\0' "$1" >&4
}

while IFS= read -r -d '' command <&3; do
  [[ $command =~ \"id\":([0-9]+) ]]
  tell "{\"id\":${BASH_REMATCH[1]},\"result\":{\"product\":\"a stand-in\",\"sessionId\":\"page\"}}"
  case $command in
  *Page.navigate*)
    if [[ -v flood ]]; then
      event='{"params":{},"phase":0,"source":{"id":1,"type":0},"time":"0","type":0},'
      yes "$event" | head -n "$flood" >>"$netlog" &
    else
      tell '{"method":"Page.loadEventFired","sessionId":"page","params":{"timestamp":1}}'
    fi
    ;;
  *Tracing.end*) tell '{"method":"Tracing.tracingComplete","params":{}}' ;;
  *Browser.close*)
    [[ -v close ]] || exit 0
    exec 5<>"/dev/tcp/127.0.0.1/$close"
    ;;
  esac
done
