// Package audit tells what was asked of the service and what it answered.
//
// The server makes one Event a request, when the answer is known, and hands it
// to three consumers:
//
//   - RequestLog.Line writes one JSON object a line on standard output, always,
//     whatever the tenant's toggles say.
//   - Recorder.Record keeps an audit entry if Event.Persist is set, which the
//     server computes with Persisted (contract G5).
//   - The same Record counts the request in the tenant's usage of that minute,
//     always.
//
// Nothing is dropped to save time or memory. Both consumers hold a bounded
// amount and then make their callers wait; the recorder has a share of it for
// each tenant, so that a tenant waits for its own entries alone. Entries are
// written in batches off the request's path. After kill -9 those of the last
// 250 ms may be missing: a new entry of a tenant is not taken while one of 200 ms
// ago is not written. After SIGTERM and Close none are.
//
// Nothing secret is stored: see redact.go for what is taken out, and encode.go
// for what an entry holds. Entries are stored by UTC day in compressed blocks
// (block.go), apart from the records; they and usage are kept for 30 days
// (Recorder.RunRetention). Log.Query reads them back, newest first.
package audit
