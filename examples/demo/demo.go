// Package demo is the demo tenant of `gatehouse demo`: a small company's
// manifest and its records, as files that may be read, copied and applied.
package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// Tenant is the id of the demo tenant.
const Tenant = "demo"

// Webhook is the slug of an endpoint that takes a webhook token; Account is the
// name of an account to ask the endpoint quote about; Customer is an end-user,
// with their Password.
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

// Record is a record to be created. The value of a reference field in Fields
// is the Key of an earlier record; whoever creates them puts its id there.
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
