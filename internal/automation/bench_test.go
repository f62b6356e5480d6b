package automation_test

import (
	"context"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/automation"
	"gatehouse/internal/inputs"
)

// idle is a host that returns at once.
type idle struct{}

var idleRecord = jsontext.Value(`{"id":"0198c0de-0000-7000-8000-000000000001","owner_id":"0198c0de-0000-7000-8000-000000000002","created_at":"2026-01-31T12:00:00.000000Z","updated_at":"2026-01-31T12:00:00.000000Z","first_name":"Ana","email":"ana@acme.example","score":12,"stage":"new","account":null}`)

func (idle) Record(context.Context, automation.RecordCall) (jsontext.Value, error) {
	return idleRecord, nil
}

func (idle) Component(context.Context, string, jsontext.Value) (jsontext.Value, error) {
	return jsontext.Value(`{"total":42}`), nil
}

func benchmark(b *testing.B, nodes string, given inputs.Object) {
	def, found := automation.Decode(jsontext.Value(`{"name":"x","input_schema":[{"name":"email","type":"text"},{"name":"score","type":"number"},{"name":"lines","type":"json"}],"outputs":[{"name":"id","type":"text"},{"name":"n","type":"json"}],"nodes":[` + nodes + `]}`))
	if len(found) > 0 {
		b.Fatal(found)
	}
	flow, found := automation.Compile(def, automation.Names{})
	if len(found) > 0 {
		b.Fatal(found)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := flow.Run(b.Context(), automation.Run{Inputs: given, Host: idle{}}); err != nil {
			b.Fatal(err)
		}
	}
}

var leadInputs = inputs.Object{
	{Name: "email", Value: jsontext.Value(`"ana@acme.example"`)}, {Name: "score", Value: jsontext.Value(`12`)},
	{Name: "lines", Value: jsontext.Value(`[{"sku":"A-1","qty":2,"price":19.90},{"sku":"B-2","qty":1,"price":5},{"sku":"C-3","qty":7,"price":0.5}]`)},
}

// BenchmarkThreeNodes measures a flow of three nodes without its host calls.
func BenchmarkThreeNodes(b *testing.B) {
	benchmark(b, `
		{"id":"create","type":"record.create","entity":"contact","fields":{"first_name":"{{inputs.email}}","email":"<{{inputs.email}}>","score":"{{inputs.score}}","stage":"new"}},
		{"type":"if","when":"inputs.score > 10 and create.stage == 'new'","then":[
		{"type":"output","set":{"id":"{{create.id}}","n":"{{inputs.score}}"}}]}`, leadInputs)
}

// BenchmarkThreeNodesWithoutReading does not read the record, so that it is not
// decoded.
func BenchmarkThreeNodesWithoutReading(b *testing.B) {
	benchmark(b, `
		{"id":"create","type":"record.create","entity":"contact","fields":{"first_name":"{{inputs.email}}","email":"<{{inputs.email}}>","score":"{{inputs.score}}","stage":"new"}},
		{"type":"if","when":"inputs.score > 10","then":[
		{"type":"output","set":{"id":"{{inputs.email}}","n":"{{create}}"}}]}`, leadInputs)
}

func BenchmarkEachOfThree(b *testing.B) {
	benchmark(b, `
		{"type":"each","in":"{{inputs.lines}}","as":"line","do":[
		{"type":"if","when":"line.qty * line.price > 4","then":[{"type":"output","set":{"n":"{{line.sku}}: {{line.qty}}"}}]}]},
		{"type":"component","component":"total","inputs":{"lines":"{{inputs.lines}}"},"outputs":{"total":"id"}}`, leadInputs)
}

func BenchmarkTraceJSON(b *testing.B) {
	def, _ := automation.Decode(jsontext.Value(`{"name":"x","nodes":[{"id":"a","type":"record.create","entity":"contact"},{"type":"set","values":{"x":"{{a.id}}"}}]}`))
	flow, _ := automation.Compile(def, automation.Names{})
	result, err := flow.Run(b.Context(), automation.Run{Host: idle{}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = result.Trace.JSON()
	}
}
