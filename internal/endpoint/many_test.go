package endpoint_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gatehouse/internal/gatetest"
)

const readings = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities:
  - name: device
    fields: [{name: serial, type: text, unique: true, required: true}, {name: count, type: number}]
  - name: reading
    fields: [{name: device, type: reference, entity: device}, {name: value, type: number, required: true}, {name: nr, type: number, unique: true}]
permission_sets:
  - {name: work, entities: {device: {create: true, read: true, update: true}, reading: {create: true, read: true, update: true, delete: true}}}
users:
  - {email: olivia@acme.example, name: O, owner: true}
  - {email: sam@acme.example, name: S, permission_sets: [work]}
logic_components:
  - name: store
    inputs: [{name: serial, type: text}, {name: values, type: json}]
    source: |
      export default ({serial, values}) => {
        const device = records.upsert("device", "serial", {serial, count: values.length});
        const made = records.createMany("reading", values.map((value) => ({device: device.id, value})));
        return {device: device.id, made: made.length, last: made.at(-1)};
      }
  - name: caught
    source: |
      export default () => {
        const tell = (f) => { try { f(); return null } catch (e) { return [e.code, e.details.items ? e.details.items.map((i) => [i.index, i.error.code]) : e.message] } };
        const [one] = records.createMany("reading", [{value: 1, nr: 1}]);
        const out = [
          tell(() => records.createMany("reading", [{value: 2, nr: 2}, {nr: 3}, {value: 4, nr: 1}, {value: 5, nr: 2}])),
          tell(() => records.updateMany("reading", [{id: one.id, fields: {value: 9}}, {id: "none", fields: {}}])),
          tell(() => records.createMany("reading", Array(201).fill({value: 1}))),
          tell(() => records.createMany("reading", {})), tell(() => records.createMany("reading", [{value: 1}, 7])),
          tell(() => records.updateMany("reading", [{id: one.id}])), tell(() => records.upsert("reading", "value", {value: 1})),
        ];
        return {out, empty: records.createMany("reading", []), now: records.get("reading", one.id).value, free: records.createMany("reading", [{value: 2, nr: 2}])[0].nr,
          changed: records.updateMany("reading", [{id: one.id, fields: {value: 7}}])[0].value};
      }
automations:
  - name: flow
    trigger: http.request
    input_schema: [{name: serial, type: text}, {name: readings, type: json}]
    outputs: [{name: device, type: text}, {name: first, type: text}]
    nodes:
      - {id: device, type: record.upsert, entity: device, by: serial, fields: {serial: "{{inputs.serial}}", count: 7}}
      - {id: made, type: record.create, entity: reading, fields: "{{inputs.readings}}"}
      - {type: record.create, entity: reading, fields: [{device: "{{device.id}}", value: 1}, {value: 2}]}
      - {type: output, set: {device: "{{device.id}}", first: "{{made.0.id}}"}}
custom_endpoints:
  - {slug: store, target: {component: store}}
  - {slug: caught, target: {component: caught}}
  - {slug: flow, target: {automation: flow}}
`

// Runs that upsert one value at once make one record, and none of them fails: the last
// try of a run waits for the record.
func TestConcurrentUpsertsInRuns(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(readings)
		sam := w.Key("sam@acme.example")
		for round := range 4 {
			var wg sync.WaitGroup
			for range 6 {
				wg.Go(func() {
					sam.Post("/public/v1/custom/store", fmt.Sprintf(`{"serial":"c%d","values":[1,2]}`, round)).Want(200, "")
				})
			}
			wg.Wait()
			if n := len(sam.Get(fmt.Sprintf("/public/v1/data/device?filter[serial]=c%d", round)).Want(200, "").Records()); n != 1 {
				t.Errorf("%d devices", n)
			}
		}
	})
}

func TestManyRecordsOfOneCall(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(readings)
		sam := w.Key("sam@acme.example")
		const reading = "/public/v1/data/reading"
		count := func() int {
			var body struct {
				Meta struct{ Total int }
			}
			if err := json.Unmarshal(sam.Get(reading+"?count=true&limit=1").Want(200, "").Body, &body); err != nil {
				t.Fatal(err)
			}
			return body.Meta.Total
		}
		values := strings.TrimSuffix(strings.Repeat("1.5,", 200), ",")
		var first, second struct {
			Data struct {
				Device string
				Made   int
				Last   struct{ Device string }
			}
		}
		for _, into := range []any{&first, &second} {
			a := sam.Post("/public/v1/custom/store", `{"serial":"s1","values":[`+values+`]}`).Want(200, "")
			if err := json.Unmarshal(a.Body, into); err != nil {
				t.Fatal(err)
			}
		}
		if first.Data.Made != 200 || first.Data.Device != second.Data.Device || second.Data.Last.Device != first.Data.Device || count() != 400 {
			t.Errorf("%+v %+v, %d readings", first, second, count())
		}
		a := sam.Post("/public/v1/custom/caught", `{}`).Want(200, "")
		want := `{"data":{"out":[["VALIDATION",[[1,"VALIDATION"],[2,"CONFLICT"],[3,"CONFLICT"]]],["NOT_FOUND",[[1,"NOT_FOUND"]]],` +
			`["VALIDATION","expected at most 200 records in one call, found 201"],["VALIDATION","records.createMany: expected a list"],` +
			`["VALIDATION","records.createMany: [1]: expected the fields as an object"],["VALIDATION","records.updateMany: [0]: expected {id, fields}"],` +
			`["VALIDATION","by: expected a unique field of reading"]],"empty":[],"now":1,"free":2,"changed":7},"meta":{}}`
		if string(a.Body) != want {
			t.Errorf("%s\nwant\n%s", a.Body, want)
		}
		if n := count(); n != 402 {
			t.Errorf("%d readings", n)
		}
		var flow struct {
			Data struct{ Device, First string }
		}
		if err := json.Unmarshal(sam.Post("/public/v1/custom/flow", `{"serial":"s1","readings":[{"value":3},{"value":4}]}`).Want(200, "").Body, &flow); err != nil {
			t.Fatal(err)
		}
		if flow.Data.Device != first.Data.Device || flow.Data.First == "" || count() != 406 {
			t.Errorf("%+v, %d readings", flow, count())
		}
		// One that fails leaves nothing, and is named by its index.
		a = sam.Post("/public/v1/custom/flow", `{"serial":"s2","readings":[{"value":3},{"value":"x"}]}`).Want(422, "EXECUTION_ERROR")
		if !strings.Contains(string(a.Body), `"items":[{"index":1,`) || count() != 406 || len(sam.Get("/public/v1/data/device").Want(200, "").Records()) != 1 {
			t.Errorf("%d readings: %s", count(), a.Body)
		}
		sam.Post("/public/v1/custom/flow", fmt.Sprintf(`{"serial":"s2","readings":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"value":1},`, 201), ","))).Want(422, "EXECUTION_ERROR")
	})
}
