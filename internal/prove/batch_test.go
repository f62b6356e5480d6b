package prove

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// batchItems is how many records one batch of these tests creates.
const batchItems = 50

// A batch with an Idempotency-Key that is sent until it is acknowledged is done once and
// as a whole, at whatever moment the server is killed, and each acknowledgement names
// the same records.
func TestProveBatchesAreDoneOnce(t *testing.T) {
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "ONCE-3", engine)
		w := fresh(t, engine)
		var base atomic.Pointer[string]
		n := w.start()
		base.Store(&n.public)
		var over atomic.Bool
		var senders sync.WaitGroup
		sent := make([]int, 6)
		for id := range sent {
			senders.Go(func() {
				for ; !over.Load(); sent[id]++ {
					insistOnBatch(p, w, &base, fmt.Sprintf("%d-%d", id, sent[id]))
				}
			})
		}
		for range scale(8, 100) {
			p.tried(1)
			time.Sleep(p.between(30*time.Millisecond, 300*time.Millisecond))
			n.kill()
			if n.panicked() {
				p.fail("panic: %s%s", n.stdout(), n.stderr())
			}
			n = w.start()
			base.Store(&n.public)
		}
		over.Store(true)
		senders.Wait()
		batches := 0
		for _, of := range sent {
			batches += of
		}
		p.add("batches", batches)
		list, err := n.client(w.token).all()
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]int{}
		for _, r := range list {
			of[r.FirstName]++
		}
		if len(list) != batches*batchItems || len(of) != batches {
			p.fail("%d batches left %d records of %d", batches, len(list), len(of))
		}
		n.kill()
		if engine == db.SQLite {
			integrity(p, filepath.Join(w.dir, db.FileName))
		}
	})
}

// insistOnBatch sends a batch until it was acknowledged twice.
func insistOnBatch(p *proof, w *world, base *atomic.Pointer[string], key string) {
	c := &http.Client{Timeout: patience}
	defer c.CloseIdleConnections()
	item := fmt.Sprintf(`{"op":"create","fields":{"first_name":%q}},`, key)
	body := `{"items":[` + strings.TrimSuffix(strings.Repeat(item, batchItems), ",") + `]}`
	var known []string
	for acknowledged := 0; acknowledged < 2; {
		r, err := http.NewRequest(http.MethodPost, *base.Load()+contact+"/batch", strings.NewReader(body))
		if err != nil {
			p.fail("%v", err)
			return
		}
		r.Host = host
		r.Header.Set("Authorization", "Bearer "+w.token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		a, err := exchange(c, r)
		if err != nil || a.status == http.StatusServiceUnavailable { // killed, or starting
			time.Sleep(2 * time.Millisecond)
			continue
		}
		var done struct {
			Data []struct{ Data record }
		}
		if err := json.Unmarshal(a.body, &done); err != nil || a.status != http.StatusOK || len(done.Data) != batchItems {
			p.fail("%s", a)
			return
		}
		ids := make([]string, batchItems)
		for i := range ids {
			ids[i] = done.Data[i].Data.ID
		}
		if known != nil && !slices.Equal(ids, known) {
			p.fail("%s: acknowledged as %v and as %v", key, known, ids)
		}
		if replay := a.header.Get("Idempotent-Replay") == "true"; acknowledged > 0 && !replay {
			p.fail("%s was done again", key)
		}
		known = ids
		acknowledged++
	}
}
