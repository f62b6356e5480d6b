// Package server is the composition root: it wires the features to their
// storage, serves them, and drains.
//
// A request goes one way (decisions 2.4): client address → tenant by host →
// room in the audit log → switch → route → credential → IP allowlist → origin →
// rate limit → the route's handler (permission, body) → one answer in the
// envelope → request log, audit log, metrics. exchange.go is that way, checks.go its steps,
// answer.go its end.
package server
