package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/server"
)

// TestADrainLosesNothing stops a node under load, as SIGTERM would: every
// answer is complete and in the logs, and nothing unanswered was done.
func TestADrainLosesNothing(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		sam.Get(me).Want(200, "")
		node := w.Nodes[0]

		var mu sync.Mutex
		answered := map[string]int{} // status by request id
		created := 0
		failures := map[string]int{}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 24 {
			// A third of the callers opens a connection for each request.
			fresh := i%3 == 0
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: fresh}}
			t.Cleanup(client.CloseIdleConnections)
			wg.Go(func() {
				<-start
				for n := 0; ; n++ {
					method, path, body := "GET", contact, ""
					if n%4 == 0 {
						method, body = "POST", `{"first_name":"Ada"}`
					}
					r, err := http.NewRequest(method, node.URL+path, strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					r.Host = gatetest.Host
					r.Header.Set("Authorization", "Bearer "+sam.Token)
					r.Header.Set("Content-Type", "application/json")
					res, err := client.Do(r)
					if err != nil {
						kind := "dropped"
						if !fresh { // HTTP cannot tell which side closed first, but a drain does not need to
							kind = "closed between requests"
						}
						switch {
						case errors.Is(err, syscall.ECONNREFUSED):
							kind = "refused"
						case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
							kind = "reset" // the kernel accepted the connection between the last accept and the close
						}
						mu.Lock()
						failures[kind]++
						mu.Unlock()
						if kind == "refused" {
							return
						}
						continue
					}
					got, err := io.ReadAll(res.Body)
					err = errors.Join(err, res.Body.Close())
					if err != nil || !json.Valid(got) {
						t.Errorf("%s: an answer broke off: %v: %.100q", method, err, got)
					}
					mu.Lock()
					answered[res.Header.Get("X-Request-Id")] = res.StatusCode
					if res.StatusCode == 201 {
						created++
					}
					mu.Unlock()
				}
			})
		}
		close(start)
		for n := 0; n < 150; { // until there is enough load
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			n = len(answered)
			mu.Unlock()
		}
		begun := time.Now()
		node.Stop()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the drain took %v", took)
		}
		wg.Wait()
		if failures["dropped"] > 0 || failures["closed between requests"] > 4 {
			t.Errorf("requests were taken and not answered: %v", failures)
		}
		t.Logf("%d answered, %d created; of those not answered: %v", len(answered), created, failures)

		for id, status := range answered {
			if status != 200 && status != 201 {
				t.Errorf("request %s: %d", id, status)
			}
		}
		if created == 0 {
			t.Error("nothing was created")
		}
		lines := 0
		for _, line := range node.Log.Lines(t) {
			if id, _ := line["request_id"].(string); line["event"] == "public_api.request" {
				lines++
				if _, ok := answered[id]; !ok && line["path"] != me {
					t.Errorf("request %s was done, and its answer lost: %v", id, line)
				}
			}
		}
		log := w.AuditLog("acme")
		for id := range answered {
			if log[id] == nil {
				t.Errorf("request %s was answered and has no audit entry", id)
			}
		}
		if lines != len(answered)+1 || len(log) != lines {
			t.Errorf("%d answers, %d lines of the log, %d audit entries", len(answered)+1, lines, len(log))
		}
		after := w.AddNode()
		list, total := sam.At(after).Get(contact+"?limit=200"), 0
		for {
			m := list.Want(200, "").Meta()
			total += m.Count
			if !m.HasMore {
				break
			}
			list = sam.At(after).Get(contact + "?limit=200&cursor=" + *m.NextCursor)
		}
		if total != created {
			t.Errorf("%d records, %d creations answered", total, created)
		}
	})
}

// TestADrainIsOverForWhoReadsNothing: a client that does not read its answer is cut off
// when the drain is over. The requests that still run are recorded, what is queued is
// written, and the server stops without an error. (The recorder was closed under them, in
// no time at all, since the drain had used up the time of everything else.)
func TestADrainIsOverForWhoReadsNothing(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		defer server.DrainFor(300 * time.Millisecond)()
		node := w.Nodes[0]
		run := func(pattern string, handler func(ctx context.Context) httpapi.Reply) {
			node.Server.AddRouteAsIs("public data", httpapi.Route{
				Method: "GET", Pattern: pattern, Auth: httpapi.KeyOrJWT, Limit: httpapi.PerCredential, Audit: httpapi.AuditStandard,
				Handler: func(ctx context.Context, _ *httpapi.Authed) (httpapi.Reply, error) { return handler(ctx), nil },
			})
		}
		slow := make(chan struct{})
		run("/public/v1/large", func(context.Context) httpapi.Reply {
			return httpapi.Reply{Data: []byte(`"` + strings.Repeat("x", 32<<20) + `"`)}
		})
		run("/public/v1/slow", func(context.Context) httpapi.Reply {
			close(slow)
			time.Sleep(time.Second)
			return httpapi.Reply{Data: []byte(`"late"`)}
		})
		w.Apply(acme)
		w.Apply("tenant: acme\npublic_api: {enabled: true, log_standard_requests: true}\n")
		sam := w.Key("sam@acme.example")
		reads, err := net.Dial("tcp", strings.TrimPrefix(node.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer reads.Close()
		fmt.Fprintf(reads, "GET /public/v1/large HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", gatetest.Host, sam.Token)
		var late sync.WaitGroup
		late.Go(func() {
			r, err := http.NewRequest("GET", node.URL+"/public/v1/slow", nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Host = gatetest.Host
			r.Header.Set("Authorization", "Bearer "+sam.Token)
			if res, err := http.DefaultTransport.RoundTrip(r); err == nil { // it is cut off, or answered just before
				_ = res.Body.Close()
			}
		})
		<-slow
		begun := time.Now()
		node.Stop() // fails the test where the server returns an error
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the drain took %v", took)
		}
		late.Wait()
		if !node.Log.Contains(`"server.requests_cut"`) || node.Log.Contains("entry_lost") || node.Log.Contains("not_kept") {
			t.Error("the log does not say that requests were cut, or says that something is lost")
		}
		found := map[string]bool{}
		for _, e := range w.AuditLog("acme") {
			found[e.Path] = true
		}
		if !found["/public/v1/large"] || !found["/public/v1/slow"] {
			t.Errorf("the audit log has %v", found)
		}
	})
}
