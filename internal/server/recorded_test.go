package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// An answer is sent after all other work for its request: its entry is recorded
// by then, and a client that has the whole answer cannot make its next request
// arrive before this one is over, however long the answer is.
func TestAnAnswerIsRecordedBeforeItsFirstByteIsSent(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	sam := w.Key("sam@acme.example")
	server := w.Nodes[0].Server
	long := sam.Post(contact, `{"first_name":"`+strings.Repeat("x", 60<<10)+`"}`).Want(201, "")
	short := sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "")
	for name, c := range map[string]struct {
		path   string
		status int
	}{
		"a short answer": {contact + "/" + short.ID(), 200}, "a long one": {contact + "/" + long.ID(), 200},
		"a list": {contact, 200}, "an error": {contact + "?limit=0", 400},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+gatetest.Host+c.path, nil)
		r.Header.Set("Authorization", "Bearer "+sam.Token)
		r.RemoteAddr = "127.0.0.1:4000"
		for server.AuditStats().Queued > 0 { // until everything recorded earlier is written
			time.Sleep(time.Millisecond)
		}
		before, bytes := server.AuditStats().Written, 0
		server.ServeHTTP(watched{http.Header{}, func(status, n int) {
			bytes += n
			if status != 0 && status != c.status {
				t.Errorf("%s: status %d, want %d", name, status, c.status)
			}
			if s := server.AuditStats(); s.Queued == 0 && s.Written == before {
				t.Errorf("%s: it is sent before it is recorded", name)
			}
		}}, r)
		if bytes == 0 {
			t.Errorf("%s: nothing was sent", name)
		}
	}
}

// watched is a connection that calls sent when a status, or bytes, are written.
type watched struct {
	header http.Header
	sent   func(status, bytes int)
}

func (w watched) Header() http.Header    { return w.header }
func (w watched) WriteHeader(status int) { w.sent(status, 0) }
func (w watched) Write(p []byte) (int, error) {
	w.sent(0, len(p))
	return len(p), nil
}
