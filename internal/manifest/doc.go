// Package manifest is the YAML form of a tenant's configuration: `gatehouse
// apply` and `gatehouse export` (contract S4; docs/manifest.md is the reference
// for whoever writes one). It makes a tree of values of a document and a
// document of a tree; what the values mean, and all rules, are config's. A
// problem that config finds at a path is reported at the line of that path.
package manifest
