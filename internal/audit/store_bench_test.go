package audit

import (
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db/dbtest"
)

// BenchmarkRecord is what an audited request costs in all: encoding, the queue
// and the database's work, as fast as entries are written.
func BenchmarkRecord(b *testing.B) {
	for _, engine := range dbtest.Engines {
		b.Run(string(engine), func(b *testing.B) {
			r := NewRecorder(dbtest.Open(b, engine), clock.System(), Options{})
			proto := readOne()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				ev := *proto
				ev.Start = noon.Add(time.Duration(i) * time.Microsecond)
				r.Record(&ev)
			}
			if err := r.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}
