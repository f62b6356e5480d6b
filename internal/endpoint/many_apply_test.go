package endpoint_test

import (
	"runtime"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
	"gatehouse/internal/manifest"
)

// apply refuses an upsert by a field that is not unique, and a change that takes unique from the field
// by which a stored flow upserts (contract F7).
func TestApplyKnowsByWhichFieldAFlowUpserts(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(readings)
		refused := func(src, text string) {
			t.Helper()
			if _, err := w.TryApply(src, manifest.Options{}); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %s", err, text)
			}
		}
		const by = `by: serial, fields: {serial: "{{inputs.serial}}", count: 7}`
		refused(strings.Replace(readings, by, strings.Replace(by, "by: serial", "by: count", 1), 1), `device has no unique field "count"`)
		schema, _, _ := strings.Cut(readings, "logic_components:")
		refused(strings.Replace(schema, "unique: true, required: true", "required: true", 1), "field serial of device must stay unique: automation flow upserts by it")
	})
}

// The errors of the items of one call are bounded as those of a batch are (contract R17).
func TestWhatIsWrongWithManyIsBounded(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		options, fields, item := strings.Repeat("o", 20_000), "", ""
		for _, name := range []string{"s0", "s1", "s2"} {
			fields += ", {name: " + name + ", type: select, options: [" + options + "]}"
			item += `,"` + name + `":"x"`
		}
		w.Apply(strings.Replace(readings, "{name: value, type: number, required: true}", "{name: value, type: number, required: true}"+fields, 1))
		sam := w.Key("sam@acme.example")
		one := `{"value":1` + item + `}`
		body := `{"serial":"x","readings":[` + strings.Repeat(one+",", 199) + one + `]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := sam.Post("/public/v1/custom/flow", body).Want(422, "EXECUTION_ERROR")
		runtime.ReadMemStats(&after)
		if !strings.Contains(string(a.Body), "at most 8 MiB together") || len(a.Body) > 1000 {
			t.Errorf("%d bytes: %.300s", len(a.Body), a.Body)
		}
		t.Logf("%d MiB were allocated", (after.TotalAlloc-before.TotalAlloc)>>20)
	})
}
