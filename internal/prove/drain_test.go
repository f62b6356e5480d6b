package prove

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// grace is how long a server may take to stop, with some tolerance.
const grace = 35 * time.Second

// A server that is told to stop answers the requests that it has begun, and exits with 0.
func TestProveDrain(t *testing.T) {
	underRace(t)
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "DUR-13", engine)
		w, f := fresh(t, engine), newFleet(p, 12)
		for range scale(10, 100) {
			drainOnce(t, p, w, f)
		}
		n := w.start()
		verify(p, n, w, f)
		n.kill()
	})
}

func drainOnce(t *testing.T, p *proof, w *world, f *fleet) {
	t.Helper()
	p.tried(1)
	n := w.start()
	c := n.client(w.token)
	defer c.close()
	var told atomic.Bool
	var at time.Time
	time.AfterFunc(p.between(50*time.Millisecond, 300*time.Millisecond), func() {
		at = time.Now()
		told.Store(true)
		n.terminate()
	})
	acks := f.acks
	f.load(context.Background(), c, told.Load)
	code := n.end(grace)
	p.most("stopped", time.Since(at))
	p.add("acknowledged", f.acks-acks)
	if code != 0 || n.panicked() {
		p.fail("exit %d: %s%s", code, n.stdout(), n.stderr())
	}
	n = w.start()
	defer n.kill()
	cut := n.client(w.token)
	defer cut.close()
	list, err := cut.all()
	if err != nil {
		p.fail("list: %v", err)
		return
	}
	seen, ids := f.compare(list, f.mark(true), f.mark(false))
	unanswered := 0
	for i, w := range f.writers { // a change that was made although its answer never arrived
		if len(w.changes) > w.acked && !afterAcked(w).equal(seen[i]) {
			unanswered++
		}
	}
	p.add("done_without_answer", unanswered)
	if unanswered > 1 { // one connection may be closed as idle at the instant when its request is read
		p.fail("%d requests were accepted, done and not answered", unanswered)
	}
	f.adopt(seen, ids)
}

func afterAcked(w *writer) state {
	s := w.base.clone()
	for _, ch := range w.changes[:w.acked] {
		s.apply(ch)
	}
	return s
}

// A stopping server that waits for a slow request reports that it is not ready, accepts
// no new connections, and still answers that request.
func TestProveDrainWaitsForASlowRequest(t *testing.T) {
	underRace(t)
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "DUR-13-slow", engine)
		p.tried(1)
		w := fresh(t, engine)
		n := w.start()
		conn, body := slowPost(t, n, w.token)
		defer conn.Close()
		n.terminate()
		draining := 0
		for begun := time.Now(); draining != http.StatusServiceUnavailable && time.Since(begun) < 5*time.Second; {
			draining = n.readyz()
			time.Sleep(5 * time.Millisecond)
		}
		if draining != http.StatusServiceUnavailable {
			p.fail("/readyz says %d while draining", draining)
		}
		if other, err := net.DialTimeout("tcp", strings.TrimPrefix(n.public, "http://"), time.Second); err == nil {
			if err := other.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if b, err := bufio.NewReader(other).ReadByte(); err == nil {
				p.fail("a new connection is served while draining: %q", b)
			}
			_ = other.Close() // it was only tried
		}
		if _, err := conn.Write([]byte(body)); err != nil {
			p.fail("the rest of the body: %v", err)
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			p.fail("the slow request got no answer: %v", err)
		} else if r.StatusCode != http.StatusCreated {
			p.fail("the slow request got %d", r.StatusCode)
		}
		finished := time.Now()
		code := n.end(grace)
		p.most("exit_after_last_answer", time.Since(finished))
		if code != 0 || time.Since(finished) > strictly(2*time.Second) {
			p.fail("exit %d after %s: %s", code, time.Since(finished), n.stderr())
		}
	})
}

// A server that is told to stop serves on for the drain delay: /readyz is 503, new
// connections are taken, and each answer ends its connection. A second signal ends it at
// once.
func TestProveDrainDelay(t *testing.T) {
	underRace(t)
	together(t)
	p := begin(t, "DUR-14", db.SQLite)
	p.tried(1)
	w := fresh(t, db.SQLite)
	n := w.start("--drain-delay", "10m")
	n.terminate()
	for begun := time.Now(); n.readyz() != http.StatusServiceUnavailable; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("/readyz says %d after the signal", n.readyz())
		}
	}
	for i := range 3 {
		r, err := http.NewRequest(http.MethodPost, n.public+contact, strings.NewReader(values(fmt.Sprintf("late-%d@load.example", i), 1)))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Authorization", "Bearer "+w.token)
		r.Header.Set("Content-Type", "application/json")
		res, err := (&http.Client{Timeout: patience, Transport: &http.Transport{}}).Do(r)
		if err != nil {
			p.fail("a new connection during the delay: %v", err)
			continue
		}
		_ = res.Body.Close() // its status is all that is looked at
		if res.StatusCode != http.StatusCreated || !res.Close {
			p.fail("during the delay: %d, the connection ends: %v", res.StatusCode, res.Close)
		}
	}
	n.terminate()
	if n.end(patience) == 0 || n.running() {
		p.fail("a second signal does not end the process at once")
	}
}

// slowPost sends a request without the end of its body, which it returns.
func slowPost(t *testing.T, n *node, token string) (net.Conn, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.public, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := values("slow@load.example", 1)
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		contact, host, token, len(body))
	if _, err := conn.Write([]byte(head + body[:10])); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // the server must have read it before the signal
	return conn, body[10:]
}
