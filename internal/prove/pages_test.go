package prove

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// largeManifest is a tenant with large records; the second is another tenant.
const largeManifest = `
tenant: %s
hosts: [%s]
public_api: {enabled: true, log_standard_requests: false}
unauthenticated_per_ip_per_minute: 1000000
entities:
  - name: contact
    fields: [{name: first_name, type: text}, {name: extra, type: json}]
users: [{email: olivia@acme.example, name: Olivia Owner, owner: true}]
`

// mostPages is how much memory of its own the program may take during the storm: its size
// after the records were stored, one tenant's share of the answers, and as much again for
// what the garbage collector has not freed yet. The audit log, whose memory has separate
// bounds, is off here.
const mostPages = 320 << 20

// Clients that list large records, and clients that do not read their answers, take
// bounded memory, and another tenant is served meanwhile.
func TestProveLargePages(t *testing.T) {
	asShipped(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "MEM-pages", engine)
		w := bare(t, engine)
		w.apply(fmt.Sprintf(largeManifest, "acme", host))
		w.apply(fmt.Sprintf(largeManifest, "other", "other.localhost"))
		w.token = w.key(owner)
		n := w.start()
		c := n.client(w.token)
		defer c.close()
		records := scale(40, 120)
		for i := range records {
			body := fmt.Sprintf(`{"first_name":"large %d","extra":{"pad":%q}}`, i, strings.Repeat("y", 1_000_000))
			if a, err := c.do("POST", contact, body); err != nil || a.status != http.StatusCreated {
				t.Fatalf("%v %v", a, err)
			}
		}
		s := &pageStorm{p: p, n: n, token: w.token, other: strings.TrimSpace(w.must("key", "create", "--tenant", "other", "--user", owner,
			"--name", "prove", "--rate-limit", "100000000"))}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(scale(3, 30))*time.Second)
		defer cancel()
		m := n.watch(ctx)
		before := m.now()
		s.run(ctx, c)
		most := m.most.Load()
		p.add("before_mib", int(before>>20))
		p.add("most_mib", int(most>>20))
		if most > mostPages {
			p.fail("the program took %d MiB of its own", most>>20)
		}
		if !n.running() || n.panicked() {
			p.fail("the server did not stay: %s%s", n.stdout(), n.stderr())
		}
	})
}

// pageStorm is 8 clients that list, 10 that do not read, and another tenant's.
type pageStorm struct {
	p            *proof
	n            *node
	token, other string
}

func (s *pageStorm) run(ctx context.Context, c *client) {
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for ctx.Err() == nil {
				s.list(c)
			}
		})
	}
	for range 10 {
		wait.Go(func() { s.unread(ctx) })
	}
	var times []time.Duration
	own := s.n.client(s.other)
	defer own.close()
	for ctx.Err() == nil {
		r, err := http.NewRequest(http.MethodGet, own.base+"/public/v1/me", http.NoBody)
		if err != nil {
			s.p.t.Fatal(err)
		}
		r.Host = "other.localhost"
		r.Header.Set("Authorization", "Bearer "+s.other)
		a, err := exchange(own.http, r)
		if err != nil || a.status != http.StatusOK {
			s.p.fail("another tenant's request: %v %v", a, err)
			break
		}
		times = append(times, a.at.Sub(a.sent))
		time.Sleep(10 * time.Millisecond)
	}
	wait.Wait()
	slices.Sort(times)
	s.p.add("other_requests", len(times))
	if len(times) > 0 {
		s.p.most("other_p99", times[len(times)*99/100])
		s.p.most("other_max", times[len(times)-1])
	}
}

// list requests the largest page and reads it.
func (s *pageStorm) list(c *client) {
	s.p.tried(1)
	a, err := c.do("GET", contact+"?limit=200", "")
	switch {
	case err != nil:
		s.p.fail("a list: %v", err)
	case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
		s.p.add("overloaded", 1)
	case a.status != http.StatusOK || len(a.body) > 2<<20+1024:
		s.p.fail("a list: %d, %d bytes", a.status, len(a.body))
	}
}

// unread requests the largest page and does not read it.
func (s *pageStorm) unread(ctx context.Context) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.n.public, "http://"))
	if err != nil {
		s.p.fail("dial: %v", err)
		return
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096) // or the system would buffer the answer
	s.p.tried(1)
	if _, err := fmt.Fprintf(conn, "GET %s?limit=200 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", contact, host, s.token); err != nil {
		s.p.fail("a client that does not read: %v", err)
	}
	<-ctx.Done()
}
