package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
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
