package records_test

import (
	"fmt"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// BenchmarkCommit measures the commit of a run that creates as many records as
// a run may: plain ones, and ones with a unique and an indexed field.
func BenchmarkCommit(b *testing.B) {
	bodies := map[string]func(n int) (entity, text string){
		"plain":   func(n int) (string, string) { return "account", fmt.Sprintf(`{"name": "A%d"}`, n) },
		"indexed": func(n int) (string, string) { return "contact", fmt.Sprintf(`{"email": "e%d@x", "score": %d}`, n, n%7) },
	}
	for _, engine := range dbtest.Engines {
		for name, body := range bodies {
			b.Run(string(engine)+"/"+name, func(b *testing.B) { benchmarkCommit(b, engine, body) })
		}
	}
}

func benchmarkCommit(b *testing.B, engine db.Engine, make func(n int) (entity, text string)) {
	const creates = 1000
	h := acme(b, dbtest.Open(b, engine))
	n := 0
	for b.Loop() {
		b.StopTimer()
		u, p := h.part("sam")
		for range creates {
			n++
			entity, text := make(n)
			if _, err := p.Create(b.Context(), entity, body(b, text)); err != nil {
				b.Fatal(describe(err))
			}
		}
		b.StartTimer()
		if err := u.Commit(b.Context(), nil); err != nil {
			b.Fatal(describe(err))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*creates), "µs/create")
}
