package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

const meters = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true, log_standard_requests: false}
entities:
  - name: device
    fields: [{name: name, type: text, required: true}]
  - name: reading
    fields: [{name: device, type: reference, entity: device}, {name: at, type: datetime, indexed: true}, {name: value, type: number}, {name: unit, type: text}]
  - name: plain
    fields: [{name: at, type: datetime}, {name: value, type: number}, {name: unit, type: text}]
  - name: keyed
    fields: [{name: serial, type: text, unique: true}, {name: value, type: number}]
users: [{email: olivia@acme.example, name: Olivia, owner: true}]
`

// kept keeps the status and the body of an answer.
type kept struct {
	h      http.Header
	status int
	body   []byte
}

func (k *kept) Header() http.Header         { return k.h }
func (k *kept) Write(p []byte) (int, error) { k.body = append(k.body, p...); return len(p), nil }
func (k *kept) WriteHeader(status int)      { k.status = status }

// BenchmarkBatch measures batches of 200 records, from the end of net/http's reading to
// the start of its writing, on SQLite as it is served: FULL durability. Beside it another
// tenant creates a record every 10 ms, of which it reports the percentiles; without
// clients it creates them alone.
func BenchmarkBatch(b *testing.B) {
	const items = 200
	for _, kind := range []string{"plain", "reading", "keyed", "upsert"} {
		for _, clients := range []int{0, 1, 4} {
			b.Run(fmt.Sprintf("%s/clients=%d", kind, clients), func(b *testing.B) {
				w := gatetest.New(b, db.SQLite)
				w.Apply(meters)
				w.Apply(strings.ReplaceAll(meters, "acme", "beta"))
				olivia := w.Key("olivia@acme.example", gatetest.RateLimit(1_000_000_000))
				device := olivia.Post("/public/v1/data/device", `{"name":"d"}`).Want(201, "").ID()
				var next atomic.Int64
				body := func() string {
					var s strings.Builder
					s.WriteString(`{"items":[`)
					for i := range items {
						if i > 0 {
							s.WriteByte(',')
						}
						n := next.Add(1)
						switch kind {
						case "plain":
							fmt.Fprintf(&s, `{"op":"create","fields":{"at":"2026-01-31T12:00:00Z","value":%d.5,"unit":"kWh"}}`, n)
						case "reading":
							fmt.Fprintf(&s, `{"op":"create","fields":{"device":"%s","at":"2026-01-31T12:00:00Z","value":%d.5,"unit":"kWh"}}`, device, n)
						case "keyed":
							fmt.Fprintf(&s, `{"op":"create","fields":{"serial":"s%d","value":%d}}`, n, n)
						case "upsert":
							fmt.Fprintf(&s, `{"op":"upsert","by":"serial","fields":{"serial":"u%d","value":%d}}`, n%int64(50*items), n)
						}
					}
					s.WriteString(`]}`)
					return s.String()
				}
				entity := map[string]string{"upsert": "keyed"}[kind]
				if entity == "" {
					entity = kind
				}
				send := func(path, host, token, body string) (int, []byte) {
					r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
					r.Host, r.RemoteAddr = host, "127.0.0.1:5000"
					r.Header.Set("Authorization", "Bearer "+token)
					r.Header.Set("Content-Type", "application/json")
					k := &kept{h: http.Header{}}
					w.Nodes[0].Server.ServeHTTP(k, r)
					return k.status, k.body
				}
				other := w.KeyOf("beta", "beta.localhost", "olivia@beta.example", gatetest.RateLimit(1_000_000_000))
				stop, took := make(chan struct{}), make(chan []time.Duration, 1)
				go func() {
					var list []time.Duration
					defer func() { took <- list }()
					for {
						select {
						case <-stop:
							return
						case <-time.After(10 * time.Millisecond):
						}
						begun := time.Now()
						if status, body := send("/public/v1/data/plain", "beta.localhost", other.Token, `{"value":1}`); status != 201 {
							b.Errorf("%d %s", status, body)
							return
						}
						list = append(list, time.Since(begun))
					}
				}()
				b.ResetTimer()
				work := make(chan struct{})
				done := make(chan struct{})
				for range clients {
					go func() {
						for range work {
							if status, answer := send("/public/v1/data/"+entity+"/batch", gatetest.Host, olivia.Token, body()); status != 200 {
								b.Errorf("%d %.300s", status, answer)
							}
						}
						done <- struct{}{}
					}()
				}
				for range b.N {
					if clients == 0 {
						time.Sleep(5 * time.Millisecond)
						continue
					}
					work <- struct{}{}
				}
				close(work)
				for range clients {
					<-done
				}
				b.StopTimer()
				close(stop)
				list := <-took
				slices.Sort(list)
				if clients > 0 {
					b.ReportMetric(float64(b.N*items)/b.Elapsed().Seconds(), "records/s")
				}
				if len(list) > 0 {
					b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, "neighbour-p99-ms")
					b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, "neighbour-p50-ms")
				}
			})
		}
	}
}
