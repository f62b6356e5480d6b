// Package server is the composition root: it wires the features to their
// storage, serves them, and drains.
//
// What is served is a list of surfaces (surfaces.go): the data and the custom
// endpoints of a tenant, its External Identity, its administration. A surface
// says which hosts and paths it takes, which checks a request passes in which
// order (contract H3), and which routes it has. The pages of the operator's
// listener are in operations.go.
//
// A request passes: client address → tenant by host, surface by host and path →
// the surface's checks → its admission, on a route that takes a credential → the
// route's handler (permission, body) → one answer in the envelope → request log,
// audit log, metrics. exchange.go has this order, checks.go the checks,
// answer.go the answer.
package server
