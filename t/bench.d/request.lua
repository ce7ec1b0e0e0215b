-- What wrk sends, from the environment: BENCH_METHOD, BENCH_HEADERS (lines "Name: value"), BENCH_BODY (a file).
-- One line "BENCH {json}" on standard error tells what came of it.
wrk.method = os.getenv("BENCH_METHOD") or "GET"
for line in (os.getenv("BENCH_HEADERS") or ""):gmatch("[^\n]+") do
    local name, value = line:match("^([^:]+): *(.*)$")
    wrk.headers[name] = value
end
local file = os.getenv("BENCH_BODY")
if file then
    local input = assert(io.open(file, "rb"))
    wrk.body = input:read("*a")
    input:close()
end

function done(summary, latency, requests)
    local errors = summary.errors
    io.stderr:write(string.format(
        'BENCH {"requests":%d,"us":%d,"bytes":%d,"status":%d,"broken":%d,"p50_us":%d,"p99_us":%d}\n',
        summary.requests, summary.duration, summary.bytes, errors.status,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
