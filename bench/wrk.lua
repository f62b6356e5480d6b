-- Sends the prepared requests of a file in turn. Each line is
-- METHOD<tab>PATH or METHOD<tab>PATH<tab>BODY; headers come from wrk's -H.
local requests, at = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    local method, path, body = line:match("^(%S+)\t([^\t]+)\t?(.*)$")
    if body == "" then body = nil end
    requests[#requests + 1] = wrk.format(method, path, wrk.headers, body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "microseconds": %d, "errors": %d, "p50": %d, "p99": %d}\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
