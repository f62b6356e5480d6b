// Package endpoint serves custom endpoints: what a tenant defined itself,
// called by API key, by secret webhook token, or by a provider's signature
// (contract sections C, W and X).
//
// The way of a call:
//
//   - routes.go finds the endpoint and does the checks of its mode: who may
//     call, at which rate, with which body (contract H3, W8).
//   - identity.go decides which user the target runs as: its execution context,
//     then the endpoint's run_as, then the caller (contract X2).
//   - run.go runs the target on a records.Unit and commits what it changed, in
//     one transaction with the event and the deduplication key (contract X1, W5,
//     W7). A run that lost a race runs again.
//   - delivery.go lets one of several deliveries of the same run, and the others
//     wait.
//   - history*.go keeps the runs, with trace and console, after and outside that
//     transaction.
//
// Definitions are read once per version of the configuration (catalog.go), and
// components compiled once per source (programs.go).
package endpoint
