package audit

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// BenchmarkMillion measures queries of a log of 1,000,000 entries of one tenant
// and day: the newest 50 by user, endpoint or status, with few and with many
// matches, and how long it takes to drop the day while another day is written.
// `make bench` prints its figures. GATEHOUSE_AUDIT_ENTRIES makes the log smaller,
// to try the benchmark itself.
func BenchmarkMillion(b *testing.B) {
	entries := 1_000_000
	if given := os.Getenv("GATEHOUSE_AUDIT_ENTRIES"); given != "" {
		entries, _ = strconv.Atoi(given)
	}
	for _, engine := range dbtest.Engines {
		b.Run(string(engine), func(b *testing.B) {
			config := db.Config{Dir: b.TempDir()} // on the disk, unlike other tests
			if engine == db.Postgres {
				config = dbtest.Config(b, engine)
			}
			d := dbtest.OpenConfig(b, config)
			fillMillion(b, d, entries)
			log := Log{DB: d, Tenant: "acme"}
			for range b.N {
				for name, f := range map[string]Filter{
					"user": {User: "rare@acme.example"}, "endpoint": {Endpoint: "/custom/rare"}, "status": {ErrorsOnly: true},
					"busy-user": {User: "busy@acme.example"}, "area": {Endpoint: "/data/*"}, "all": {},
				} {
					f.Limit = 50
					var took []time.Duration
					for range 21 {
						n, begun := 0, time.Now()
						if err := log.Query(b.Context(), f, func(*Entry) error { n++; return nil }); err != nil || n != 50 {
							b.Fatalf("%s: %d entries, %v", name, n, err)
						}
						took = append(took, time.Since(begun))
					}
					slices.Sort(took)
					b.ReportMetric(took[len(took)/2].Seconds()*1000, name+"-ms")
				}
			}
			drop, stall := dropMillion(b, d)
			b.ReportMetric(drop.Seconds()*1000, "retention-ms")
			b.ReportMetric(stall.Seconds()*1000, "stall-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkMillionPages measures the pages of the console on the same log: the
// first one, one from the middle, the longest of all of a filter that selects
// little, and how many parts a histogram of the day takes and how long each.
func BenchmarkMillionPages(b *testing.B) {
	entries := 1_000_000
	if given := os.Getenv("GATEHOUSE_AUDIT_ENTRIES"); given != "" {
		entries, _ = strconv.Atoi(given)
	}
	for _, engine := range dbtest.Engines {
		b.Run(string(engine), func(b *testing.B) {
			config := db.Config{Dir: b.TempDir()}
			if engine == db.Postgres {
				config = dbtest.Config(b, engine)
			}
			d := dbtest.OpenConfig(b, config)
			fillMillion(b, d, entries)
			log := &Log{DB: d, Tenant: "acme"}
			middle := clock.IDsFrom(noon)
			for range b.N {
				for name, f := range map[string]Filter{
					"all": {}, "user": {UserID: "0193a1b2-0000-7000-8000-000000000002"}, "busy-user": {UserID: "0193a1b2-0000-7000-8000-000000000001"},
					"endpoint": {Endpoints: []string{"/custom/rare"}}, "area": {Endpoints: []string{"/data/*"}}, "errors": {ErrorsOnly: true},
					"5xx": {Class: "5xx"}, "key": {KeyID: readOne().APIKeyID}, "jwt": {Auth: "JWT"}, "path": {Path: "/custom/none"}, "ip": {IP: "192.0.2.9"}, "method": {Method: "GET"},
				} {
					f.Limit = 50
					b.ReportMetric(pageTime(b, log, f), name+"-ms")
					f.Before = middle
					b.ReportMetric(pageTime(b, log, f), name+"-deep-ms")
				}
				begun, parts, longest, below := time.Now(), 0, time.Duration(0), ""
				for parts == 0 || below != "" {
					part := time.Now()
					h, err := log.Histogram(b.Context(), Filter{Since: noon.Truncate(24 * time.Hour), Until: noon.Truncate(24 * time.Hour).Add(24 * time.Hour)}, 96, below, countFor)
					if err != nil {
						b.Fatal(err)
					}
					parts, longest, below = parts+1, max(longest, time.Since(part)), h.Next
				}
				b.ReportMetric(time.Since(begun).Seconds()*1000, "histogram-ms")
				b.ReportMetric(float64(parts), "histogram-parts")
				b.ReportMetric(longest.Seconds()*1000, "histogram-longest-ms")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// pageTime returns the median time of a page in milliseconds.
func pageTime(b *testing.B, log *Log, f Filter) float64 {
	b.Helper()
	var took []time.Duration
	for range 11 {
		begun := time.Now()
		if _, err := log.Page(b.Context(), f, searchFor); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2].Seconds() * 1000
}

// fillMillion records entries of one day; 60 of them, spread over all, are those
// of a user, of an endpoint, and errors.
func fillMillion(b *testing.B, d *db.DB, entries int) {
	b.Helper()
	h := makeTenant(b, d, "acme")
	makeUser(b, h, "0193a1b2-0000-7000-8000-000000000001", "busy@acme.example")
	makeUser(b, h, "0193a1b2-0000-7000-8000-000000000002", "rare@acme.example")
	r := NewRecorder(d, clock.System(), Options{})
	for i := range entries {
		ev := readOne()
		ev.Rendered = true
		ev.Start = noon.Truncate(24 * time.Hour).Add(time.Duration(i) * (24 * time.Hour / time.Duration(entries)))
		ev.RequestID = fmt.Sprintf("0193a1b2-0000-7000-8000-%012d", i)
		switch i % (entries / 60) {
		case 1:
			ev.UserID = "0193a1b2-0000-7000-8000-000000000002"
		case 2:
			ev.Endpoint = "/custom/rare"
		case 3:
			ev.Status = 500
		}
		r.Record(ev)
	}
	if err := r.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// dropMillion drops the full day while entries of the next day are written, and
// returns how long that took and how long the slowest write took.
func dropMillion(b *testing.B, d *db.DB) (drop, stall time.Duration) {
	b.Helper()
	s := dbStore{d: d, writer: "bench"}
	next := noon.Add(24 * time.Hour)
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		for i := 0; !stop.Load(); i++ {
			ev := readOne()
			ev.Start = next.Add(time.Duration(i) * time.Microsecond)
			begun, block := time.Now(), blockOf(ev)
			if err := s.write(b.Context(), "acme", block.day, []packed{block.pack()}); err != nil {
				done <- err
				return
			}
			stall = max(stall, time.Since(begun))
		}
		done <- nil
	}()
	time.Sleep(100 * time.Millisecond)
	begun := time.Now()
	if err := s.expireDays(b.Context(), db.DayOf(next)); err != nil {
		b.Fatal(err)
	}
	drop = time.Since(begun)
	time.Sleep(100 * time.Millisecond)
	stop.Store(true)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	if days, err := d.Days().List(b.Context()); err != nil || len(days) != 1 {
		b.Fatalf("%v %v", days, err)
	}
	return drop, stall
}
