// Package background is what the work beside requests has in common: when it
// begins, how it is tried again, and how it ends.
//
// Sweep repeats a pass over what is stored, such as the deletion of what has
// expired; Each and Steps are how a pass goes through tenants and through rows.
// A Batcher collects what requests leave behind, such as log lines, and writes
// it in batches. A Backoff is the pauses between the tries of a failing write.
//
// What has a promise of its own does not fit, and has a loop of its own: the
// audit log's entries (audit.Recorder), whose callers wait once an entry is
// 200 ms old, and mails (outbox.Outbox), which wait in the database, each until
// an instant of its own.
package background
