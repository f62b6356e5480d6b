package audit

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/user"
)

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEntry measures the processor time that one entry costs from Record to
// the disk, on all goroutines.
func BenchmarkEntry(b *testing.B) {
	record := strings.TrimSuffix(strings.TrimPrefix(oneRecord, `{"data":`), `,"meta":{}}`)
	records := func(size int) string {
		n := max(1, size/len(record))
		return `{"data":[` + strings.TrimSuffix(strings.Repeat(record+",", n), ",") + `],"meta":{}}`
	}
	for _, c := range []struct{ name, body string }{
		{"200B", `{"data":` + record[:130] + `"},"meta":{}}`}, {"14KB", records(14 << 10)}, {"1MB", records(1 << 20)},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, err := db.Open(b.Context(), db.Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			r := NewRecorder(d, clock.System(), Options{})
			body := []byte(c.body)
			b.ResetTimer()
			before := cpu()
			for n := range b.N {
				ev := readOne()
				ev.Start = time.Now()
				ev.UserID = user.ID(fmt.Sprintf("0193a1b2-0000-7000-8000-%012d", n%7))
				ev.ResponseBody, ev.Rendered = body, true
				r.Record(ev)
			}
			if err := r.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(cpu()-before)/float64(b.N)/1000, "cpu-µs/entry")
			b.StopTimer()
			if err := d.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
