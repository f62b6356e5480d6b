// Package server is the composition root: it wires the features to their
// storage, serves them, and drains.
//
// A request passes these steps in this order (contract H3): client address →
// tenant by host → room in the audit log → switch → route → credential → IP
// allowlist → origin → rate limit → the route's handler (permission, body) →
// one answer in the envelope → request log, audit log, metrics. exchange.go has
// the order, checks.go the steps, answer.go the answer.
package server
