// Package endpoint serves custom endpoints: what a tenant defined itself,
// called by API key, by secret webhook token, or by a provider's signature
// (specification, "Custom endpoints", "Webhook delivery", "Events").
//
// The way of a call:
//
//   - routes.go finds the endpoint and takes the steps of its mode: who may
//     call, at which rate, with which body (decisions 2.4).
//   - identity.go says as whom the target runs: its execution context, then the
//     endpoint's run_as, then the caller (decisions 2.30).
//   - run.go runs the target on a records.Unit and commits what it changed, in
//     one transaction with the event and what the delivery is recognized by
//     (decisions 2.31). A run that lost a race runs again.
//   - delivery.go lets one of several deliveries of the same run, and the others
//     wait.
//   - history*.go keeps the runs, with trace and console, after and outside that
//     transaction.
//
// Definitions are read once per version of the configuration (catalog.go), and
// components compiled once per source (programs.go).
package endpoint
