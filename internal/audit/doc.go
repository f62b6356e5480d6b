// Package audit records the requests to the service and its answers.
//
// The server makes one Event for each request, when the answer is known, and
// passes it to three consumers:
//
//   - RequestLog.Line writes one JSON object a line on standard output, always,
//     whatever the tenant's toggles say.
//   - Recorder.Record keeps an audit entry if Event.Persist is set, which the
//     server computes with Persisted (contract G5).
//   - The same Record counts the request in the tenant's usage of that minute,
//     always.
//
// Nothing is dropped to save time or memory. Both consumers hold a bounded
// amount and then make their callers wait. The recorder gives each tenant a
// share of it, so that a tenant waits for its own entries only. Entries are
// written in batches in the background. After kill -9 those of the last 250 ms
// may be missing (contract G10): the recorder accepts no new entry of a tenant
// while one that is 200 ms old is not written. After SIGTERM and Close none are
// missing.
//
// Nothing secret is stored: redact.go says what is taken out, and encode.go
// what an entry has. Entries are stored by UTC day in compressed blocks
// (block.go), apart from the records; they and usage are kept for 30 days
// (Recorder.RunRetention). Log.Query reads them, newest first.
package audit
