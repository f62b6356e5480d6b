// Package endpoint serves custom endpoints: what a tenant defined itself,
// called with an API key or an external user's access token, with a secret
// webhook token, or with a provider's signature (contract sections C, W and X).
//
// The path of a call:
//
//   - routes.go finds the endpoint and does the checks of its mode: who may
//     call, at which rate, with which body (contract H3, W8).
//   - identity.go decides which user the target runs as: its execution context,
//     then the endpoint's run_as, then the caller (contract X2).
//   - delivery.go lets one of several deliveries of one key run, and the others
//     wait.
//   - run.go tries the call's job until it is committed; a run that lost a race
//     runs again. execution.go is one try: it runs the target on a records.Unit
//     and commits what it changed in one transaction with the event and the
//     deduplication key (contract X1, W5, W7). target.go runs a component or a
//     flow; host.go gives it access to records.
//   - history*.go records the runs, with trace and console, after and outside that
//     transaction.
//
// Definitions are read once per version of the configuration (catalog.go), and
// components compiled once per source (programs.go).
package endpoint
