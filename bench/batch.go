package main

import (
	"encoding/json"

	"gatehouse/bench/contact"
)

// rowBatch is the row of many creates with one request.
const rowBatch = "batch of 200"

const (
	batchItems    = 200
	batchAtLeast  = 20_000 // records/s, see the issue of the batch routes
	batchClients  = 4
	batchesMade   = 50
	pocketBatches = "/api/batch"
)

// batchLoad prepares batches of different records; body makes one of its items.
func batchLoad(c *config, name, token, path string, body func([]map[string]any) any) (load, error) {
	lines := make([]string, batchesMade)
	for b := range lines {
		items := make([]map[string]any, batchItems)
		for i := range items {
			items[i] = contact.Fields(2_000_000 + b*batchItems + i)
		}
		raw, err := json.Marshal(body(items))
		if err != nil {
			return load{}, err
		}
		lines[b] = "POST\t" + path + "\t" + string(raw)
	}
	l, err := prepareLoad(c, name, token, lines)
	l.clients = batchClients
	return l, err
}

// gatehouseBatch is the body of a batch that creates the records.
func gatehouseBatch(records []map[string]any) any {
	type item struct {
		Op     string         `json:"op"`
		Fields map[string]any `json:"fields"`
	}
	items := make([]item, len(records))
	for i, fields := range records {
		items[i] = item{"create", fields}
	}
	return map[string]any{"items": items}
}

// batch is the body of PocketBase's batch that creates the records.
func (p *pocketBase) batch(records []map[string]any) any {
	type request struct {
		Method string         `json:"method"`
		URL    string         `json:"url"`
		Body   map[string]any `json:"body"`
	}
	requests := make([]request, len(records))
	for i, fields := range records {
		fields["owner"] = p.User
		requests[i] = request{"POST", pocketContacts, fields}
	}
	return map[string]any{"requests": requests}
}
