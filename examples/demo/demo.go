// Package demo is the demo tenant of `gatehouse demo`: the manifest of a small company and
// its records, as files that can be read, copied and applied.
package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// Tenant is the id of the demo tenant.
const Tenant = "demo"

// Webhook is the slug of an endpoint that takes a webhook token. Account is the name of an
// account for calls of the endpoint quote. Customer is an end-user with Password.
const (
	Customer = "eva@customer.example"
	Password = "a-password-to-try"
	Webhook  = "web-lead"
	Account  = "Alder Works"
)

// Manifest is manifest.yaml.
//
//go:embed manifest.yaml
var Manifest []byte

// RecordsJSON is records.json: a list of Record.
//
//go:embed records.json
var RecordsJSON []byte

// Record is a record to create. The value of a reference field in Fields is the Key of an
// earlier record; the caller must replace it by that record's id.
type Record struct {
	Entity string                     `json:"entity"`
	Key    string                     `json:"key"`
	Owner  string                     `json:"owner"` // a user's e-mail address
	Fields map[string]json.RawMessage `json:"fields"`
}

// Records decodes RecordsJSON.
func Records() ([]Record, error) {
	var list []Record
	if err := json.Unmarshal(RecordsJSON, &list); err != nil {
		return nil, fmt.Errorf("records.json: %w", err)
	}
	return list, nil
}
